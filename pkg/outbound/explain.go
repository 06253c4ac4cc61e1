package outbound

import (
	"errors"
	"net"
	"net/url"
)

// Explain says why a request of the client has failed, for those who chose its URL. It names neither the URL nor an
// address, so that nobody can find out which addresses the names of a private network have.
func Explain(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, ErrRefused):
		return "the address is private or of special use; IDP_OUTBOUND_ALLOW_PRIVATE permits private ones"
	case errors.Is(err, ErrBusy):
		return "too many requests to the host are in progress"
	case errors.Is(err, ErrTooLarge):
		return "the response is too large"
	case errors.As(err, &dns):
		return "the host's name was not found"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "there was no answer in time"
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	return "the connection failed: " + err.Error()
}
