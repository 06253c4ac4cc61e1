package message

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Requester is who has asked for a message: a stranger must not use up what others need.
type Requester struct {
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
func take(ctx context.Context, tx *docstore.Tx, m Message, by Requester, limits settings.Messages) (string, error) {
	quotas := []quota{{"address " + addressKey(m.To) + " " + by.Browser, limits.MostOfAddress(), 1}}
	if m.Kind == Linked { // codes that somebody asks for keep nobody from learning of a link
		quotas[0].of = "linked " + addressKey(m.To)
	} else if by.Browser == "" {
		quotas = append(quotas, quota{"all", limits.MostOfTenant(), 1})
	}
	over, err := add(ctx, tx, quotas)
	if over < 0 || err != nil {
		return "", err
	}
	return []string{reasonOfOne, reasonOfAll}[over], nil
}

// mostByPlatform is how many invitations of a tenant the platform's mail server takes in an hour, whatever the tenant's
// settings say: it serves others, too.
const mostByPlatform = 1000

// Inviting is how invitations leave.
type Inviting struct {
	By Carrier
	// Imported users leave a fifth of the limit to those who are invited by hand.
	Imported bool
}

// most is how many invitations there may be in an hour.
func (i Inviting) most(limits settings.Messages) int {
	most := limits.MostOfTenant()
	if i.By != byConnection {
		most = min(most, mostByPlatform)
	}
	if i.Imported {
		most = max(1, most*4/5)
	}
	return most
}

const ofInvitations = "invitations"

// UntilRoom is how long it takes until another invitation may leave; 0: it may now, as far as is known.
func (s *Sender) UntilRoom(ctx context.Context, how Inviting) (time.Duration, error) {
	of, err := s.Settings.Of(ctx)
	if err != nil {
		return 0, err
	}
	now := s.Store.Now().Std()
	found, err := counts.FindMany(ctx, s.Store, []string{countID(ofInvitations, now)})
	if err != nil || len(found) == 0 {
		return 0, err
	}
	c, err := found[0].Value()
	if err != nil || c.N < how.most(of.Messages) {
		return 0, err
	}
	return untilNextHour(now), nil
}

func untilNextHour(now time.Time) time.Duration {
	return now.Truncate(time.Hour).Add(time.Hour).Sub(now)
}

// takeInvitations counts invitations, unless there would be too many: then the error is apperr.RateLimited. What
// strangers ask for does not count for them.
func takeInvitations(ctx context.Context, tx *docstore.Tx, all []Message, limits settings.Messages, how Inviting,
) error {
	quotas := []quota{{ofInvitations, how.most(limits), len(all)}}
	at := map[string]int{}
	for _, m := range all {
		key := addressKey(m.To)
		if at[key] == 0 {
			at[key] = len(quotas)
			quotas = append(quotas, quota{"invitation " + key, limits.MostOfAddress(), 0})
		}
		quotas[at[key]].n++
	}
	over, err := add(ctx, tx, quotas)
	if over < 0 || err != nil {
		return err
	}
	refusal := apperr.New(apperr.RateLimited, "there would be more than %d invitations in this hour", quotas[over].most)
	if over > 0 {
		refusal = apperr.New(apperr.RateLimited, "%s would get more than %d invitations in this hour",
			all[slices.IndexFunc(all, func(m Message) bool { return at[addressKey(m.To)] == over })].To,
			quotas[over].most)
	}
	refusal.RetryAfter = untilNextHour(tx.Now.Std())
	return refusal
}

func addressKey(to string) string { return strings.ToLower(to) }

// maxTests is how many mails a tenant's administrators may try out in an hour. Settings do not change it: the mails may
// leave by the platform's server, to anybody.
const maxTests = 20

// takeTest counts a test mail, unless there were too many.
func takeTest(ctx context.Context, tx *docstore.Tx) (bool, error) {
	over, err := add(ctx, tx, []quota{{"tests", maxTests, 1}})
	return over < 0, err
}

// quota is how many messages of a kind there may be in an hour, and how many are to be sent.
type quota struct {
	of   string
	most int
	n    int
}

// countID is the id of the count of a quota in an hour. No address is stored.
func countID(of string, hour time.Time) string {
	sum := sha256.Sum256([]byte(of + hour.UTC().Format(" 2006-01-02T15")))
	return hex.EncodeToString(sum[:16])
}

// add counts messages for all quotas of the present hour, or for none: then it returns the first that would be
// exceeded, and otherwise -1.
func add(ctx context.Context, tx *docstore.Tx, quotas []quota) (over int, err error) {
	hour := tx.Now.Std().Truncate(time.Hour)
	ids := make([]string, len(quotas))
	for i, q := range quotas {
		ids[i] = countID(q.of, hour)
	}
	found, err := counts.LoadMany(ctx, tx, ids)
	if err != nil {
		return -1, err
	}
	known := map[string]*count{}
	for _, c := range found {
		known[c.ID] = c
	}
	var added []*count
	for i, q := range quotas {
		c := known[ids[i]]
		if c == nil {
			c = &count{Meta: docstore.Meta{ID: ids[i]}, Ends: clock.Of(hour.Add(time.Hour))}
			added = append(added, c)
		}
		if c.N += q.n; c.N > q.most {
			return i, nil
		}
	}
	for _, c := range found {
		if _, err = counts.Replace(ctx, tx, c); err != nil {
			return -1, err
		}
	}
	_, err = counts.InsertMany(ctx, tx, func(int) string { return "" }, added...)
	return -1, err
}
