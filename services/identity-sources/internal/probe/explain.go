package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// fault is an error whose text is for administrators. The texts of all other errors are replaced, because they can
// contain what a foreign server sent.
type fault string

func (f fault) Error() string { return string(f) }

func faultf(format string, args ...any) error { return fault(fmt.Sprintf(format, args...)) }

// explain returns what an error means and what to change.
func explain(err error) string {
	if f, ok := errors.AsType[fault](err); ok {
		return string(f)
	}
	if text := explainTLS(err); text != "" {
		return text
	}
	var dns *net.DNSError
	switch {
	case errors.Is(err, outbound.ErrRefused):
		return "the host's address is private or of special use; such requests are refused unless " +
			"IDP_OUTBOUND_ALLOW_PRIVATE is set"
	case errors.Is(err, outbound.ErrTooLarge):
		return "the answer is too large; check the address and the port"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name does not resolve; check its spelling"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "no answer in time; check the address, the port, and firewalls between"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at this address and port"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the server closed the connection; check whether it speaks this protocol on this port"
	case errors.As(err, &dns):
		return "the host name can't be resolved now"
	}
	return "the connection failed; check the address and the port"
}

func explainTLS(err error) string {
	var (
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		unknown  x509.UnknownAuthorityError
		record   tls.RecordHeaderError
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired, or is not valid yet"
	case errors.As(err, &hostname):
		return "the server's certificate is for another host name"
	case errors.As(err, &unknown):
		return "the server's certificate is from an authority that is not known here; set the authority's " +
			"certificate as CaCertificate if the connection has that field"
	case errors.As(err, &invalid):
		return "the server's certificate is not valid for a server"
	case errors.As(err, &record):
		return "the server does not speak TLS on this port"
	case errors.As(err, &alert):
		return "the server refused the TLS connection"
	}
	return ""
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
