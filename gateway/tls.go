package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often, at most, a handshake checks whether the certificate's files have changed.
const certificateCheck = 10 * time.Second

// certificate is the server's certificate. It is read again when its files change, so that a renewal needs no
// restart.
type certificate struct {
	config TLSConfig
	log    *slog.Logger

	mu      sync.Mutex
	checked time.Time
	changed [2]time.Time // the times of the files that current comes from
	current *tls.Certificate
}

func newCertificate(config TLSConfig, log *slog.Logger) (*certificate, error) {
	c := &certificate{config: config, log: log, checked: time.Now()}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls certificate: %w", err)
	}
	return c, nil
}

// load reads the files if they have changed. After an error, the present certificate stays in use.
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

// get is the GetCertificate function of the server's tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) >= certificateCheck {
		c.checked = time.Now()
		// The files may be half written; a later check reads them again.
		if err := c.load(); err != nil {
			c.log.Warn("the changed TLS certificate cannot be used; the old one stays in use", "error", err)
		}
	}
	return c.current, nil
}
