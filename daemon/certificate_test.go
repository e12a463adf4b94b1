package daemon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nize/daemon"
	"nize/daemon/api"
	"nize/daemon/settings"
)

// selfSigned writes a certificate of that name for 127.0.0.1, and its key.
func selfSigned(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// presents asks for /healthz and returns the name in the certificate.
func presents(t *testing.T, addr string) string {
	t.Helper()
	name := ""
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify:    true, // it is self-signed; its name is what the test looks at
		VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil },
		VerifyConnection:      func(s tls.ConnectionState) error { name = s.PeerCertificates[0].Subject.CommonName; return nil },
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+addr+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz: %s", resp.Status)
	}
	return name
}

// With a certificate the listener may stand beyond loopback, and a renewed one
// holds without a restart: when its files changed, and on a hangup.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cert, key := selfSigned(t, dir, "first")
	config := filepath.Join(dir, "nized.toml")
	if err := os.WriteFile(config, []byte("listen = '0.0.0.0:0'\ntls.cert = '"+cert+"'\ntls.key = '"+key+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opt, err := daemon.Configure(settings.Sources{
		Flags: map[string]string{"data_dir": filepath.Join(dir, "data"), "socket.path": filepath.Join(dir, "s")},
		Env:   func(string) string { return "" }, File: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	var later atomic.Int64
	hangups := make(chan os.Signal)
	opt.Log, opt.Hangup = slog.New(slog.DiscardHandler), hangups
	opt.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	ctx, cancel := context.WithCancel(t.Context())
	d, err := daemon.New(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	client := api.New(filepath.Join(dir, "s"))
	defer client.Close()
	s, err := api.GetStatus.Call(t.Context(), client, api.Empty{})
	if err != nil || !s.TLS || s.Config != config {
		t.Fatalf("status %+v, %v", s, err)
	}
	addr := "127.0.0.1" + s.Listen[strings.LastIndexByte(s.Listen, ':'):]
	if got := presents(t, addr); got != "first" {
		t.Errorf("presents %q", got)
	}

	selfSigned(t, dir, "second, renewed")
	later.Add(int64(time.Minute))
	if got := presents(t, addr); got != "second, renewed" {
		t.Errorf("after a minute: presents %q", got)
	}
	if err := os.WriteFile(key, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	later.Add(int64(time.Minute))
	if got := presents(t, addr); got != "second, renewed" {
		t.Errorf("with a broken key: presents %q", got)
	}
	selfSigned(t, dir, "third")
	for range 2 { // the second is taken when the first was dealt with
		hangups <- syscall.SIGHUP
	}
	if got := presents(t, addr); got != "third" {
		t.Errorf("after a hangup: presents %q", got)
	}
}
