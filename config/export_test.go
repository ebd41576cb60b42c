package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExport(t *testing.T) {
	env := environment(map[string]string{"HOME": "/home/dev", "TOKEN": "secret"})
	got := load(t, `export:
  sinks:
    archive: {kind: file, path: /var/log/r.ndjson, max_size: 2MiB, keep: 3}
    siem: {kind: http, url: "https://siem.example/in", headers: {x-key: "${TOKEN}"}, header_files: {authorization: /run/token}, ca_file: /etc/ca.pem}
    collector: {kind: otlp, url: "http://127.0.0.1:4318"}
`, env).Export
	want := []Sink{
		{Name: "archive", Kind: FileSink, Path: "/var/log/r.ndjson", MaxSize: 2 << 20, Keep: 3},
		{Name: "siem", Kind: HTTPSink, URL: "https://siem.example:443/in", Headers: map[string]Secret{"X-Key": "secret"}, HeaderFiles: map[string]string{"Authorization": "/run/token"}, CAFile: "/etc/ca.pem"},
		{Name: "collector", Kind: OTLPSink, URL: "http://127.0.0.1:4318/v1/logs"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sinks (-want +got):\n%s", diff)
	}
}

func TestExportIsChecked(t *testing.T) {
	for _, c := range []struct{ name, sinks, want string }{
		{"no kind", "{a: {}}", "kind is missing"},
		{"an unknown kind", "{a: {kind: kafka}}", "kafka"},
		{"a name that is none", "{A b: {kind: file, path: x}}", "no name of a sink"},
		{"a file without path", "{a: {kind: file}}", "path is missing"},
		{"a file with a URL", "{a: {kind: file, path: x, url: 'https://x'}}", `"url" is unknown`},
		{"an endpoint with a path of a file", "{a: {kind: http, url: 'https://x', path: x}}", `"path" is unknown`},
		{"no URL", "{a: {kind: http}}", "url is missing"},
		{"in clear text", "{a: {kind: http, url: 'http://siem.example/'}}", "use https://"},
		{"logs in clear text", "{a: {kind: otlp, url: 'http://10.0.0.1:4318'}}", "use https://"},
		{"another scheme", "{a: {kind: http, url: 'ftp://x'}}", "http://"},
		{"a key in the URL", "{a: {kind: http, url: 'https://x/?key=k'}}", "keys go into headers"},
		{"a header twice", "{a: {kind: http, url: 'https://x', headers: {k: v}, header_files: {K: f}}}", "among headers too"},
		{"a size that is too small", "{a: {kind: file, path: x, max_size: 10}}", "at least 1048576"},
		{"no object", "[]", "want an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := LoadServer(serverFile(t, "export: {sinks: "+c.sinks+"}"), environment(map[string]string{"HOME": "/home/dev"}), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestRetentionBySize(t *testing.T) {
	env := environment(map[string]string{"HOME": "/home/dev"})
	got := load(t, "retention: {records_max_size: 1GiB, transcripts_max_size: 2GiB}", env).Retention
	if want := (Retention{RecordsMaxSize: 1 << 30, TranscriptsMaxSize: 2 << 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	_, err := LoadServer(serverFile(t, "retention: {records_max_size: 1000, transcripts_max_size: 1}"), env, nil)
	if err == nil || strings.Count(err.Error(), "want at least") != 2 {
		t.Errorf("error %v", err)
	}
}
