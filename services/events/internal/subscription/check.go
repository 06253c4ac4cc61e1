package subscription

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/webhook"
	"github.com/idplatform/idplatform/pkg/weburl"
	"github.com/idplatform/idplatform/services/events/internal/catalogue"
)

const (
	maxName        = 128 // characters
	maxTypes       = 50
	maxURL         = 2048
	maxHeaders     = 20
	maxHeaderValue = 1024
)

// Filters are the conditions over events. The variable event is the CloudEvent.
var Filters = mustEnvironment()

func mustEnvironment() *condition.Environment {
	env, err := condition.NewEnvironment(condition.Map("event"))
	if err != nil {
		panic(err)
	}
	return env
}

// check notes every fault of a profile, and completes it. before is the one that it replaces, nil for a new one.
func (p *Profile) check(faults *apperr.Faults, before *Profile) {
	faults.Name("name", p.Name, maxName)
	faults.Check(len(p.EventTypes) >= 1 && len(p.EventTypes) <= maxTypes, "event_types", "must have 1…%d entries",
		maxTypes)
	for i, pattern := range p.EventTypes {
		location := "event_types[" + number(i) + "]"
		switch {
		case !stream.ValidType(pattern):
			faults.Add(location, "must be a type such as user.created, or a pattern such as user.* or *")
		case before != nil && slices.Contains(before.EventTypes, pattern): // it was right when it was given
		case !catalogue.Exists(pattern):
			faults.Add(location, "selects no type of events that the platform has; GET /v1/event-types lists them")
		}
	}
	if p.Filter != "" {
		if _, err := Filters.Cached(p.Filter); err != nil {
			faults.Add("filter", "%s", err.Error())
		}
	}
	p.Delivery.check(faults.Within("delivery"), before)
	faults.Switch("status", &p.Status, "1")
}

func (d *Delivery) check(faults *apperr.Faults, before *Profile) {
	var kept Delivery
	if before != nil {
		kept = before.Delivery
	}
	if d.Type == kept.Type && d.URL == kept.URL { // another receiver does not get signatures with it
		d.PreviousSecret, d.PreviousUntil = kept.PreviousSecret, kept.PreviousUntil // only a reset changes them
	} else {
		d.PreviousSecret, d.PreviousUntil = secret.Text{}, clock.Time{}
	}
	switch d.Type {
	case Webhook:
		d.Subject, d.User = "", ""
		if before != nil && kept.Type != Webhook {
			kept, d.PreviousSecret = Delivery{}, secret.Text{} // a password is not a webhook's secret
		}
		d.checkWebhook(faults, kept)
	case NATS:
		_, given := d.Secret.Given()
		faults.Check(d.URL == "" && len(d.Headers) == 0 && !given, "type",
			"nats has no url and no headers, and the platform generates its secret")
		*d = Delivery{
			Type: NATS, Secret: kept.Secret, PreviousSecret: kept.PreviousSecret, PreviousUntil: kept.PreviousUntil,
		}
		if kept.Type != NATS {
			*d = Delivery{Type: NATS} // a webhook's secret is not a password
		}
	default:
		faults.Add("type", "must be webhook or nats")
	}
}

func (d *Delivery) checkWebhook(faults *apperr.Faults, kept Delivery) {
	if err := checkURL(d.URL); err != nil {
		faults.Add("url", "%s", err.Error())
	}
	faults.Check(len(d.Headers) <= maxHeaders, "headers", "must have at most %d members", maxHeaders)
	for name, value := range d.Headers {
		if value == nil {
			delete(d.Headers, name)
			continue
		}
		checkHeader(faults, name, value, kept.Headers[name])
	}
	given, fresh := d.Secret.Given()
	switch {
	case fresh:
		faults.Check(webhook.ValidSecret(given), "secret", "must be %s; without one the platform generates it",
			webhook.SecretForm)
	case d.Secret.IsSet() && !kept.Secret.IsSet():
		faults.Add("secret", "has no value that could be kept")
	case !d.Secret.IsSet():
		d.Secret = kept.Secret // the zero value means: make one
	}
}

// checkURL returns why a text is not a webhook's URL. Its addresses are checked when it is used.
func checkURL(text string) error {
	u, err := weburl.HTTP(text)
	switch {
	case err != nil:
		return err
	case len(text) > maxURL:
		return errors.New("is too long")
	case u.Fragment != "":
		return errors.New("must not have a fragment")
	}
	return nil
}

// reserved are the headers that the platform or the connection sets (RFC 9110 §7.6.1).
var reserved = []string{
	"Host", "Content-Length", "Content-Type", "Content-Encoding", "Connection", "Keep-Alive", "Proxy-Connection",
	"Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	"User-Agent", "Traceparent", "Tracestate", "Accept-Encoding",
}

func checkHeader(faults *apperr.Faults, name string, value, kept *secret.Text) {
	at := "headers." + name
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case len(name) > 128 || !httpguts.ValidHeaderFieldName(name):
		faults.Add("headers", "must have names of headers (RFC 9110 §5.1)")
		return
	case slices.Contains(reserved, canonical) || strings.HasPrefix(canonical, "Webhook-"):
		faults.Add(at, "is set by the platform or the connection")
	}
	given, fresh := value.Given()
	faults.Check(!fresh || len(given) <= maxHeaderValue && httpguts.ValidHeaderFieldValue(given), at,
		"must be the value of a header of at most %d bytes", maxHeaderValue)
	faults.Check(fresh || kept != nil && kept.IsSet(), at, "has no value that could be kept")
}
