package main

import (
	"fmt"
	"strings"
)

// chart is a picture of figures: bars in groups, on one scale.
type chart struct {
	name  string // of the file, without its ending
	title string
	about string // what was done and how to read it, for the page and for who cannot see
	unit  string
	bars  []bar
}

// bar is one figure. Bars with the same group stand together, those with the same
// label have one colour.
type bar struct {
	group, label string
	figure       figure
	aim          aim
}

// aim is where a figure should be: at most or at least its value, or as many times
// another figure and a distance; the zero value is none.
type aim struct {
	most         bool
	times, value float64
	of           figure
}

func (a aim) none() bool { return a.times == 0 && a.value == 0 }

func atLeast(v float64) aim { return aim{value: v} }
func atMost(v float64) aim  { return aim{most: true, value: v} }
func atMostOf(f figure, times, distance float64) aim {
	return aim{most: true, times: times, value: distance, of: f}
}

const (
	program = "stopgate/cmd/stopgate"
	search  = "stopgate/transcripts"
	scripts = "stopgate/commandhooks"
	opa     = "stopgate/bench/opa"
)

// chartSuites are the runs that the charts' figures are of.
func chartSuites() []suite {
	return []suite{
		{pkg: program, benchmarks: []string{"BenchmarkEvaluate"}, time: "10x", count: 3},
		{pkg: program, benchmarks: []string{"BenchmarkHook"}, time: "100x", count: 3},
		{pkg: scripts, benchmarks: []string{"BenchmarkScript"}, time: "75x", count: 3},
		{pkg: search, benchmarks: []string{"BenchmarkGrep"}, time: "3x", count: 3},
		{module: "bench/opa", pkg: ".", benchmarks: []string{"BenchmarkBesideOPA"}, time: "10x", count: 3},
	}
}

// charts are all charts, in the page's order.
func charts() []chart {
	return []chart{echoChart(), opaChart(), scriptChart(), grepChart(), hookChart()}
}

func echoChart() chart {
	c := chart{name: "echo", title: "A durable decision, as a share of a bare Echo server", unit: "requests a second, Echo's = 1",
		about: "Both servers are asked in turns of a tenth of a second. Echo reads a JSON body and sends it back; the gate decides an event that no hook matches and stores the record, synced to disk, before it answers."}
	for _, route := range []struct{ name, says string }{{"native", "/v1/evaluate"}, {"claude-code", "/v1/hooks/claude-code"}} {
		for _, size := range []struct {
			bytes int
			says  string
		}{{433, "433 B"}, {8192, "8 KB"}} {
			for _, connections := range []struct {
				n    int
				says string
				aim  float64
			}{{64, "64 connections", 0.40}, {8, "8 connections", 0.29}, {1, "1 connection", 0.30}} {
				c.bars = append(c.bars, bar{group: route.says + ", " + size.says, label: connections.says, aim: atLeast(connections.aim),
					figure: figure{program, fmt.Sprintf("BenchmarkEvaluate/%s/%dB/%dconn", route.name, size.bytes, connections.n), "of-echo"}})
			}
		}
	}
	return c
}

func opaChart() chart {
	c := chart{name: "opa", title: "A rule, as a share of OPA's server that keeps nothing", unit: "requests a second, OPA's without a log = 1",
		about: "Whether a shell command may run, by a rule hook, by the command hook that it replaces, and by OPA's server with and without its decision log, in turns of a fifth of a second. The gate stores every decision before it answers; OPA's log is written behind its answer."}
	for _, connections := range []struct {
		n    int
		says string
	}{{8, "8 connections"}, {1, "1 connection"}} {
		for _, s := range []struct {
			name, says string
			aim        aim
		}{
			{"rule", "rule, kept through a power cut", atLeast(1)},
			{"rule-process", "rule, kept through a kill", aim{}},
			{"command", "command hook", aim{}},
			{"opa-logging", "OPA with its log", aim{}},
		} {
			c.bars = append(c.bars, bar{group: connections.says, label: s.says, aim: s.aim,
				figure: figure{opa, fmt.Sprintf("BenchmarkBesideOPA/%dconn", connections.n), s.name + "-of-opa"}})
		}
	}
	return c
}

func scriptChart() chart {
	c := chart{name: "scripts", title: "A script as a hook, beside its bare interpreter", unit: "milliseconds at the median",
		about: "The same script started bare, in a sandbox that is started for it, and in a sandbox that was started ahead, in turns, each 25 times a second."}
	for _, s := range []struct {
		name string
		cold func(bare figure) aim
		warm float64 // times bare
	}{
		{"bash echo", func(bare figure) aim { return atMostOf(bare, 1, 6) }, 0.8},
		{"python3 json+re", func(bare figure) aim { return atMostOf(bare, 1.5, 0) }, 0.35},
	} {
		at := func(way string) figure {
			return figure{scripts, "BenchmarkScript/" + underscored(s.name), way + "-p50-ms"}
		}
		bare := at("bare")
		c.bars = append(c.bars,
			bar{group: s.name, label: "bare", figure: bare},
			bar{group: s.name, label: "sandbox for it", figure: at("cold"), aim: s.cold(bare)},
			bar{group: s.name, label: "sandbox ahead", figure: at("warm"), aim: atMostOf(bare, s.warm, 0)})
	}
	return c
}

func grepChart() chart {
	c := chart{name: "grep", title: "GrepSearch, as a share of ripgrep", unit: "throughput, rg -n -j1 = 1",
		about: "One text in the page cache, searched by GrepSearch and by ripgrep on one thread in turns; by the clock, and by the processor's time, which a busy machine changes less."}
	for _, p := range []struct {
		name, says string
		aim        aim
	}{
		{"literal", "ERROR 503 upstream", atLeast(0.6)},
		{"no match", "ThisIsNowhere", aim{}},
		{"alternation", "(?i)upstream|tool_use|zebra", atLeast(0.5)},
		{"a.*b", "connection.*pool.*ERROR", atLeast(2)},
		{"tool", `tool_use.*"Bash"`, aim{}},
		{"literal and class", `ERROR\s+\d{3}`, atLeast(0.7)},
		{"no literal", `[A-Z]{5} \d{3}`, atLeast(0.5)},
	} {
		for _, by := range []struct{ unit, says string }{{"of-rg", "clock"}, {"cpu-of-rg", "processor"}} {
			c.bars = append(c.bars, bar{group: p.says, label: by.says, aim: p.aim, figure: figure{search, "BenchmarkGrep/" + underscored(p.name), by.unit}})
		}
	}
	return c
}

func hookChart() chart {
	c := chart{name: "hook", title: "A hook as a host runs it: a process and a round trip", unit: "milliseconds",
		about: "Each call starts a process that asks a local server, which stores its record before it answers; the least client posts its input and prints the answer, and does nothing else."}
	for _, q := range []struct {
		unit, says  string
		small, full aim
	}{{"p50-ms", "median", atMost(10), atMost(30)}, {"p95-ms", "95th percentile", aim{}, aim{}}} {
		for _, client := range []struct {
			name, says string
			aim        aim
		}{{"minimal", "least client", aim{}}, {"small", "stopgate-hook", q.small}, {"stopgate", "stopgate hook", q.full}} {
			c.bars = append(c.bars, bar{group: q.says, label: client.says, aim: client.aim, figure: figure{program, "BenchmarkHook", client.name + "-" + q.unit}})
		}
	}
	return c
}

// underscored is a sub-benchmark's name as package testing prints it.
func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }
