// Package health asks a program of the platform whether it is ready. The health checks of containers use it, because
// an image holds nothing but the program.
package health

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Probe asks for /readyz at listen, an address of this machine such as 0.0.0.0:8080, and returns nil if the program
// answers that it is ready. It waits up to three seconds. With TLS it does not check the certificate, which is for
// another name than this machine's address.
func Probe(ctx context.Context, listen string, withTLS bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	scheme := "http"
	if withTLS {
		scheme = "https"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see above
	}}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health: not ready (%d)", response.StatusCode)
	}
	return nil
}
