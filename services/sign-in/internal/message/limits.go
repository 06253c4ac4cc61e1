package message

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// AskedBy says who has asked for a message, since a stranger must not use up what others need.
type AskedBy struct {
	// Browser is the hash of the cookie of a browser in which the recipient has signed in before; empty: a stranger
	// asks.
	Browser string
}

// count is how many messages were accepted in an hour, for an address or for all addresses of the tenant.
type count struct {
	docstore.Meta
	N    int        `json:"n"`
	Ends clock.Time `json:"ends"`
}

var counts = docstore.Define(docstore.Schema[count]{
	Name: "message_counts", Noun: "count of messages", Due: func(c *count) clock.Time { return c.Ends },
})

// Due lists the counts to forget.
var Due = counts.Due

// Forget deletes a count whose hour has ended.
func (s *Sender) Forget(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		c, err := counts.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = counts.Delete(ctx, tx, c)
		return err
	})
}

// take counts a message, unless there were too many: then it returns the reason. An address has a count of its own for
// each browser in which its owner has signed in, and these do not count for the tenant.
func take(ctx context.Context, tx *docstore.Tx, m Message, by AskedBy, limits settings.Messages) (string, error) {
	hour := tx.Now.Std().Truncate(time.Hour)
	ofOne := "address " + strings.ToLower(m.To) + " " + by.Browser
	ok, err := add(ctx, tx, ofOne, hour, limits.MostOfAddress())
	if err != nil || !ok {
		return reasonOfOne, err
	}
	if by.Browser != "" {
		return "", nil
	}
	if ok, err = add(ctx, tx, "all", hour, limits.MostOfTenant()); err != nil || !ok {
		return reasonOfAll, err
	}
	return "", nil
}

// maxTests is how many mails a tenant's administrators may try out in an hour. Settings do not change it: the mails may
// leave by the platform's server, to anybody.
const maxTests = 20

// takeTest counts a test mail, unless there were too many.
func takeTest(ctx context.Context, tx *docstore.Tx) (bool, error) {
	return add(ctx, tx, "tests", tx.Now.Std().Truncate(time.Hour), maxTests)
}

func add(ctx context.Context, tx *docstore.Tx, what string, hour time.Time, most int) (bool, error) {
	sum := sha256.Sum256([]byte(what + hour.UTC().Format(" 2006-01-02T15")))
	id := hex.EncodeToString(sum[:16]) // no address is stored
	found, err := counts.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		_, err := counts.Insert(ctx, tx, &count{
			Meta: docstore.Meta{ID: id}, N: 1, Ends: clock.Of(hour.Add(time.Hour)),
		})
		return true, err
	}
	if found[0].N >= most {
		return false, nil
	}
	found[0].N++
	_, err = counts.Replace(ctx, tx, found[0])
	return true, err
}
