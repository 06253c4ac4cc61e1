// Package target calls the targets of jobs that are outside this service: webhooks and workers on NATS.
package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/webhook"
	"github.com/idplatform/idplatform/services/automation/internal/job"
)

// message is what a target receives.
type message struct {
	JobID         string         `json:"job_id"`
	SubJobID      string         `json:"sub_job_id"`
	Name          string         `json:"name"`
	Attempt       int64          `json:"attempt"`
	Payload       jsontext.Value `json:"payload"`
	Deadline      clock.Time     `json:"deadline"`
	CallbackURL   string         `json:"callback_url"`
	CallbackToken string         `json:"callback_token"`
}

func messageOf(c job.Call) ([]byte, error) {
	return json.Marshal(message{c.JobID, c.SubJobID, c.Name, c.Attempt, c.Payload, c.Deadline, c.CallbackURL,
		c.CallbackToken})
}

// messageID identifies an attempt, so that a target recognizes a message that it receives twice.
func messageID(c job.Call) string { return c.SubJobID + "." + strconv.FormatInt(c.Attempt, 10) }

// Webhook posts runs to the target's URL. 202 accepts a run; another 2xx status ends it, and the body is its result if
// it is JSON. Every other answer fails the attempt. client must limit responses and not follow redirects; its Timeout
// does not apply, because each run has its own deadline.
func Webhook(client *http.Client) job.Runner {
	own := *client
	own.Timeout = 0
	return webhookTarget{&own}
}

type webhookTarget struct{ client *http.Client }

// Run implements job.Runner.
func (w webhookTarget) Run(ctx context.Context, c job.Call) (job.Outcome, error) {
	body, err := messageOf(c)
	if err != nil {
		return job.Outcome{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Target.URL, bytes.NewReader(body))
	if err != nil {
		return job.Outcome{}, errors.New("the URL is not valid")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "idplatform-jobs")
	var secrets []string
	if !c.Secret.IsZero() {
		secrets = append(secrets, c.Secret.Reveal())
	}
	webhook.Sign(r.Header, messageID(c), time.Now(), body, secrets...)
	response, err := w.client.Do(r)
	if err != nil {
		return job.Outcome{}, errors.New("the webhook cannot be reached: " + outbound.Explain(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return job.Outcome{RetryAfter: outbound.RetryAfter(response, time.Now())},
			fmt.Errorf("the webhook answered %d", response.StatusCode)
	case response.StatusCode == http.StatusAccepted:
		return job.Outcome{Accepted: true}, nil
	case err != nil:
		return job.Outcome{}, errors.New("the webhook's answer cannot be read: " + outbound.Explain(err))
	case !json.Valid(text):
		return job.Outcome{}, nil
	}
	return job.Outcome{Result: text}, nil
}
