package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSFiles are the PEM files of a server's side of TLS.
type TLSFiles struct {
	Cert, Key string
	// ClientCA are the authorities whose client certificates are believed;
	// empty: none is asked for.
	ClientCA string
}

// maxPEM is more than a chain, or a bundle of every public authority, takes.
const maxPEM = 4 << 20

// tlsLooked is how often files are looked at, while connections come.
const tlsLooked = time.Second

// TLS reads the files, and reads them again when they have changed: new
// connections get what is there by then, those that are open stay. Files that
// are not usable are said so in the log, once, and those before stay in use. The
// error is about the files as they are now.
func TLS(files TLSFiles, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	r := &reloading{files: files, now: now, log: log}
	pem, err := files.read()
	if err != nil {
		return nil, err
	}
	if r.config, err = pem.config(files); err != nil {
		return nil, err
	}
	r.seen, r.looked = pem.sum(), now()
	outer := r.config.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil }
	return outer, nil
}

// reloading is a configuration that follows its files.
type reloading struct {
	files TLSFiles
	now   func() time.Time
	log   *slog.Logger

	mu     sync.Mutex
	config *tls.Config // in use; never changed once it was
	looked time.Time
	seen   [32]byte // of the content that was looked at last, good or bad
	failed string   // the last failure to read, already said
}

// current looks at the files if it is time to. What they hold is compared, not
// when they were written: a clock may go back, and a link be changed.
func (r *reloading) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if since := now.Sub(r.looked); since >= 0 && since < tlsLooked {
		return r.config
	}
	r.looked = now
	pem, err := r.files.read()
	if err != nil {
		if text := err.Error(); text != r.failed {
			r.failed = text
			r.log.Error("certificate files cannot be read: the old ones stay in use", "error", text)
		}
		return r.config
	}
	r.failed = ""
	sum := pem.sum()
	if sum == r.seen {
		return r.config
	}
	r.seen = sum
	fresh, err := pem.config(r.files)
	if err != nil {
		r.log.Error("new certificate files are not usable: the old ones stay in use", "error", err.Error())
		return r.config
	}
	r.config = fresh
	r.log.Info("certificate files were read again", "cert", r.files.Cert)
	return r.config
}

// pemFiles is what the files hold.
type pemFiles struct{ cert, key, clientCA []byte }

func (f TLSFiles) read() (p pemFiles, err error) {
	for _, file := range []struct {
		path string
		into *[]byte
	}{{f.Cert, &p.cert}, {f.Key, &p.key}, {f.ClientCA, &p.clientCA}} {
		if file.path == "" {
			continue
		}
		if *file.into, err = readPEM(file.path); err != nil {
			return pemFiles{}, err
		}
	}
	return p, nil
}

func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err == nil && len(data) > maxPEM {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxPEM>>20)
	}
	return data, err
}

func (p pemFiles) sum() [32]byte {
	return sha256.Sum256(bytes.Join([][]byte{p.cert, p.key, p.clientCA}, []byte{0}))
}

// config is the configuration of one connection.
func (p pemFiles) config(files TLSFiles) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %q with key %q: %w", files.Cert, files.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if files.ClientCA == "" {
		return c, nil
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(p.clientCA) {
		return nil, fmt.Errorf("client_ca %q holds no certificate", files.ClientCA)
	}
	// A client may log in by a key instead. Without sessions, that an authority is
	// no longer believed does not hang on how a resumed one is checked.
	c.ClientAuth, c.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	return c, nil
}
