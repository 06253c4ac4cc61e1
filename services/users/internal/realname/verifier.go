package realname

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Claim is who a person claims to be.
type Claim struct {
	Name   string `json:"real_name"`
	Number string `json:"id_number"` // normalized
	Type   string `json:"id_type"`   // cn_resident_id, or the name of another kind of document
}

// Verifier decides whether a claim is true.
type Verifier interface {
	// Verify reports whether name and number belong together. The error is apperr.Unavailable if that cannot be found
	// out now.
	Verify(ctx context.Context, c Claim) (bool, error)
}

// HTTPVerifier asks an HTTP service: a POST of the claim as JSON, answered with status 200 and {"verified": true} or
// {"verified": false}. The client sets the time limit.
type HTTPVerifier struct {
	URL    string
	Client *http.Client
}

const maxAnswer = 64 << 10

// Verify implements Verifier.
func (v HTTPVerifier) Verify(ctx context.Context, c Claim) (bool, error) {
	verified, err := v.ask(ctx, c)
	if err != nil {
		return false, apperr.Away("the real-name verifier", err)
	}
	return verified, nil
}

func (v HTTPVerifier) ask(ctx context.Context, c Claim) (bool, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := v.Client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, whose query may contain a key
	}
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	if len(raw) > maxAnswer {
		return false, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	var answer struct {
		Verified *bool `json:"verified"`
	}
	// The answer may contain the person's data, so the error contains nothing of it.
	if json.Unmarshal(raw, &answer) != nil || answer.Verified == nil {
		return false, fmt.Errorf("the answer does not say whether it is verified")
	}
	return *answer.Verified, nil
}
