package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/idplatform/idplatform/sdk/go/webhook"
)

// The TypeScript SDK plays the same cases.
func TestVerify(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name    string
		Secrets []string
		Headers map[string]string
		Body    string
		Now     int64
		Result  string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	results := map[string]error{
		"ok": nil, "header": webhook.ErrHeader, "timestamp": webhook.ErrTimestamp, "signature": webhook.ErrSignature,
		"secret": webhook.ErrSecret,
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			want, known := results[c.Result]
			if !known {
				t.Fatalf("no such result: %s", c.Result)
			}
			header := http.Header{}
			for name, value := range c.Headers {
				header.Set(name, value)
			}
			err := webhook.Verify(header, []byte(c.Body), webhook.Options{
				Secrets: c.Secrets, Now: func() time.Time { return time.Unix(c.Now, 0) },
			})
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
