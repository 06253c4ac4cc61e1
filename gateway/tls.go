package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often, at most, handshakes look whether the certificate's files have changed.
const certificateCheck = 10 * time.Second

// certificate is the server's, read again when its files change, so that renewing one needs no restart.
type certificate struct {
	config TLSConfig
	log    *slog.Logger

	mu      sync.Mutex
	checked time.Time
	changed [2]time.Time // of the files that current is from
	current *tls.Certificate
}

func newCertificate(config TLSConfig, log *slog.Logger) (*certificate, error) {
	c := &certificate{config: config, log: log, checked: time.Now()}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls certificate: %w", err)
	}
	return c, nil
}

// load reads the files if they changed. On error the certificate stays what it was.
func (c *certificate) load() error {
	var changed [2]time.Time
	for i, name := range []string{c.config.CertFile, c.config.KeyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		changed[i] = info.ModTime()
	}
	if c.current != nil && changed == c.changed {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.config.CertFile, c.config.KeyFile)
	if err != nil {
		return err
	}
	c.current, c.changed = &pair, changed
	return nil
}

// get is a tls.Config's GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) >= certificateCheck {
		c.checked = time.Now()
		if err := c.load(); err != nil { // half-written, perhaps: the next check may find it whole
			c.log.Warn("the changed TLS certificate can't be used; the old one stays", "error", err)
		}
	}
	return c.current, nil
}
