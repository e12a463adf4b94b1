package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often a handshake checks whether the certificate's files changed.
// Nothing watches them in between.
const lookEvery = 5 * time.Second

// certificate serves tls.cert and tls.key, and follows their files: new connections use a
// renewed certificate without a restart. If the new files don't match, for example between
// two renames, it keeps the old certificate.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]fileMark
	looked time.Time
}

// fileMark identifies one state of a file.
type fileMark struct {
	mod  time.Time
	size int64
}

func openCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler), now: time.Now}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *certificate) marks() (m [2]fileMark, err error) {
	for i, path := range []string{c.certFile, c.keyFile} {
		fi, err := os.Stat(path)
		if err != nil {
			return m, fmt.Errorf("looking at the certificate: %w", err)
		}
		m[i] = fileMark{fi.ModTime(), fi.Size()}
	}
	return m, nil
}

// load reads both files, even if they are unchanged.
func (c *certificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	marks, err := c.marks()
	if err != nil {
		return err
	}
	return c.loadLocked(marks)
}

// loadLocked keeps the old pair if the new one is invalid; c.mu is held.
func (c *certificate) loadLocked(marks [2]fileMark) error {
	c.seen = marks // don't retry an invalid state until it changes
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading tls.cert %s and tls.key %s: %w", c.certFile, c.keyFile, err)
	}
	c.pair = &pair
	return nil
}

// get implements a tls.Config's GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery || now.Before(c.looked) {
		c.looked = now
		marks, err := c.marks()
		if err == nil && marks != c.seen {
			if err = c.loadLocked(marks); err == nil {
				c.log.Info("the certificate was reloaded", "cert", c.certFile)
			}
		}
		if err != nil {
			c.log.Error("the old certificate remains in use", "err", err)
		}
	}
	return c.pair, nil
}

// ends returns when the current certificate expires, zero if it can't be read.
func (c *certificate) ends() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair == nil || len(c.pair.Certificate) == 0 {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(c.pair.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}
