package docstoretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

var sealedCases = []testCase{
	{name: "sealed/a value is shown as a mask and stored nowhere else", run: sealedIsMasked},
	{name: "sealed/a mask keeps the value, a text replaces it, an empty text removes it", run: sealedIsKept},
	{name: "sealed/a mask keeps no value that would be sent elsewhere", run: sealedStaysOnItsRoute},
	{name: "sealed/a value is deleted with its record", run: sealedDeleted},
	{name: "sealed/a value given while its record is deleted does not stay", run: sealedWhileDeleted},
	{name: "sealed/values survive a rotation of the keys", run: sealedRotates},
	{name: "sealed/values under older keys are listed, and sealed again", run: sealedAgain},
	{name: "sealed/a value that a replica with the former keys writes is listed", run: sealedByFormerReplica},
	{name: "sealed/a value written while others are sealed again stays", run: sealedMeanwhile},
	{name: "sealed/a dry run seals nothing", run: sealedDryRun},
}

// Safe is a document with sealed members: one that is declared, and others that its data names.
type Safe struct {
	docstore.Meta
	Name   string                  `json:"name"`
	Secret secret.Text             `json:"secret"`
	Others map[string]*secret.Text `json:"others,omitempty"`
	Host   string                  `json:"host,omitempty"` // Secret is sent to it
	Plain  bool                    `json:"plain,omitempty"`
}

// Safes is a collection with sealed members.
var Safes = docstore.Define(docstore.Schema[Safe]{
	Name: "safes", Noun: "safe",
	Sealed: func(v *Safe) []docstore.Sealed {
		route := docstore.Route{"host": v.Host, "tls": !v.Plain}
		members := []docstore.Sealed{docstore.Seal("secret", &v.Secret, route)}
		for name, text := range v.Others {
			members = append(members, docstore.Seal("others."+name, text, docstore.NotSent).At("others["+name+"]"))
		}
		return members
	},
})

var (
	firstKey  = secret.NewKey()
	secondKey = secret.NewKey()
	keyring   = mustRing(firstKey.Reveal())
	both      = mustRing(secondKey.Reveal() + "," + firstKey.Reveal())
	second    = mustRing(secondKey.Reveal())
)

func mustRing(entries string) *secret.Keyring {
	ring, err := secret.ParseKeyring(secret.New(entries))
	if err != nil {
		panic(err)
	}
	return ring
}

// putSafe inserts a safe, or replaces it with what a client sends.
func (f *fixture) putSafe(t *testing.T, ctx context.Context, id, body string) docstore.Doc[Safe] {
	t.Helper()
	doc, err := f.trySafe(ctx, id, body)
	require.NoError(t, err)
	return doc
}

func (f *fixture) trySafe(ctx context.Context, id, body string) (docstore.Doc[Safe], error) {
	return docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Safe], error) {
		found, err := Safes.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return docstore.Doc[Safe]{}, err
		}
		if len(found) == 0 {
			v := &Safe{Meta: docstore.Meta{ID: id}}
			if err := json.Unmarshal([]byte(body), v); err != nil {
				return docstore.Doc[Safe]{}, err
			}
			return Safes.Insert(ctx, tx, v)
		}
		v := found[0]
		*v = Safe{Meta: v.Meta}
		if err := json.Unmarshal([]byte(body), v); err != nil {
			return docstore.Doc[Safe]{}, err
		}
		return Safes.Replace(ctx, tx, v)
	})
}

func (f *fixture) reveal(t *testing.T, ctx context.Context, id, member string) string {
	t.Helper()
	value, err := Safes.Reveal(ctx, f.Store, id, member)
	require.NoError(t, err)
	all, err := Safes.RevealAll(ctx, f.Store, id)
	require.NoError(t, err)
	require.Equal(t, value.Reveal(), all[member].Reveal(), "one value and all of them")
	return value.Reveal()
}

func sealedIsMasked(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	written := f.putSafe(t, ctx, "1", `{"name":"n","secret":"hunter2","others":{"pin":"4711"}}`)
	read, err := Safes.Find(ctx, f.Store, "1")
	require.NoError(t, err)
	for _, doc := range []docstore.Doc[Safe]{written, read} {
		body, err := doc.JSON()
		require.NoError(t, err)
		require.Contains(t, string(body), `"secret":"******","others":{"pin":"******"}`)
	}
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"))
	require.Equal(t, "4711", f.reveal(t, ctx, "1", "others.pin"))
	require.Empty(t, f.reveal(t, ctx, "1", "name"))
	require.Empty(t, f.reveal(t, ctx, "2", "secret"))
	require.Empty(t, f.reveal(t, in(t, "t2"), "1", "secret"), "another tenant's")
	rows, err := f.engine.Get(ctx, Safes.Def(), "t1", []string{"1"})
	require.NoError(t, err)
	require.False(t, strings.Contains(string(rows[0].Data), "hunter2") || strings.Contains(string(rows[0].Data), "v1."),
		"neither value nor sealed form")
}

func sealedIsKept(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2","others":{"pin":"4711"}}`)
	f.clock.advance(time.Minute)

	same := f.putSafe(t, ctx, "1", `{"secret":"******","others":{"pin":"******"}}`)
	require.False(t, same.Changed())
	same = f.putSafe(t, ctx, "1", `{"secret":"hunter2","others":{"pin":"4711"}}`)
	require.False(t, same.Changed(), "the same value is not a change")
	require.EqualValues(t, 1, same.Version)

	changed := f.putSafe(t, ctx, "1", `{"secret":"hunter3","others":{"pin":"******"}}`)
	require.EqualValues(t, 2, changed.Version, "a new value is a change, even though the record looks the same")
	require.Equal(t, "hunter3", f.reveal(t, ctx, "1", "secret"))
	require.Equal(t, "4711", f.reveal(t, ctx, "1", "others.pin"))

	removed := f.putSafe(t, ctx, "1", `{"secret":"","others":{"other":"******"}}`)
	body, err := removed.JSON()
	require.NoError(t, err)
	require.Contains(t, string(body), `"secret":"","others":{"other":""}`,
		"a mask without a stored value becomes empty")
	for _, member := range []string{"secret", "others.pin", "others.other"} {
		require.Empty(t, f.reveal(t, ctx, "1", member))
	}
	f.putSafe(t, ctx, "1", `{"secret":"again"}`)
	require.Equal(t, "again", f.reveal(t, ctx, "1", "secret"))
}

// sealedStaysOnItsRoute: whoever sets another receiver must know the secret.
func sealedStaysOnItsRoute(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"host":"a","secret":"hunter2","others":{"pin":"4711"}}`)
	for _, body := range []string{
		`{"host":"b","secret":"******"}`, `{"secret":"******"}`, `{"host":"a","plain":true,"secret":"******"}`,
	} {
		_, err := f.trySafe(ctx, "1", body)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), body)
		refusal, ok := errors.AsType[*apperr.Error](err)
		require.True(t, ok)
		require.Len(t, refusal.Faults, 1)
		require.Equal(t, "secret", refusal.Faults[0].Location)
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"))
	f.putSafe(t, ctx, "1", `{"host":"a","name":"n","secret":"******","others":{"pin":"******"}}`)
	f.putSafe(t, ctx, "1", `{"host":"b","secret":"hunter2","others":{"pin":"******"}}`)
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"), "who gives it may send it")
	require.Equal(t, "4711", f.reveal(t, ctx, "1", "others.pin"), "it is not sent")
	f.putSafe(t, ctx, "1", `{"host":"c","others":{"pin":"******"}}`)
	require.Empty(t, f.reveal(t, ctx, "1", "secret"), "one that is removed is not sent either")
	require.Panics(t, func() { docstore.Seal("secret", &secret.Text{}, nil) }, "every member says where it is sent")
}

func sealedDeleted(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for _, id := range []string{"1", "2", "3"} {
		f.putSafe(t, ctx, id, `{"secret":"hunter2"}`)
	}
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		v, err := Safes.Load(ctx, tx, "1")
		if err != nil {
			return err
		}
		if _, err := Safes.Delete(ctx, tx, v); err != nil {
			return err
		}
		return Safes.DeleteWhere(ctx, tx, docstore.ID("2"), nil)
	}))
	require.Empty(t, f.reveal(t, ctx, "1", "secret"))
	require.Empty(t, f.reveal(t, ctx, "2", "secret"))
	require.Equal(t, "hunter2", f.reveal(t, ctx, "3", "secret"))
}

func sealedWhileDeleted(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for round := range 10 {
		id := docID(round)
		f.putSafe(t, ctx, id, `{}`)
		for _, err := range together(2, func(i int) error {
			if i == 0 {
				_, err := f.trySafe(ctx, id, `{"secret":"hunter2"}`)
				return err
			}
			return f.write(ctx, func(tx *docstore.Tx) error {
				v, err := Safes.Load(ctx, tx, id)
				if err == nil {
					_, err = Safes.Delete(ctx, tx, v)
				}
				return err
			})
		}) {
			if err != nil {
				require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err), "%v", err)
			}
		}
		if _, err := Safes.Find(ctx, f.Store, id); apperr.IsNotFound(err) {
			require.Empty(t, f.reveal(t, ctx, id, "secret"))
		}
	}
}

func sealedRotates(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2"}`)
	require.NoError(t, f.SealWith(ctx, both))
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"))
	require.NoError(t, f.SealWith(ctx, second))
	_, err := Safes.Reveal(ctx, f.Store, "1", "secret")
	require.ErrorIs(t, err, secret.ErrOpen)
	require.NotContains(t, err.Error(), "hunter2")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2"}`)
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"), "a value sent again is sealed under the new key")
}

func (f *fixture) underOlderKeys(t *testing.T) []docstore.Ref {
	t.Helper()
	refs, err := docstore.UnderOlderKeys(t.Context(), f.Store, 100)
	require.NoError(t, err)
	return refs
}

func sealedAgain(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	f.putSafe(t, t1, "1", `{"secret":"hunter2","others":{"pin":"4711"}}`)
	f.putSafe(t, t2, "2", `{"secret":"hunter3"}`)
	before, err := Safes.Find(t1, f.Store, "1")
	require.NoError(t, err)
	f.clock.advance(time.Minute)
	require.Empty(t, f.underOlderKeys(t))
	require.NoError(t, f.SealWith(t1, keyring), "another start")
	require.Empty(t, f.underOlderKeys(t), "with the same key")

	require.NoError(t, f.SealWith(t1, both))
	require.Equal(t, []docstore.Ref{{Tenant: "t1", ID: "safes.1"}, {Tenant: "t2", ID: "safes.2"}}, f.underOlderKeys(t))
	f.putSafe(t, t1, "1", `{"secret":"hunter4","others":{"pin":"******"}}`)
	require.Len(t, f.underOlderKeys(t), 1, "a write seals all values of its record under the first key")
	require.NoError(t, docstore.Reseal(t2, f.Store, "safes.2"))
	require.NoError(t, docstore.Reseal(t2, f.Store, "safes.2"), "by another replica, too")
	require.Empty(t, f.underOlderKeys(t))
	require.True(t, apperr.IsNotFound(docstore.Reseal(t2, f.Store, "safes.3")))

	require.NoError(t, f.SealWith(t1, second))
	require.Empty(t, f.underOlderKeys(t), "the same first key")
	require.Equal(t, "hunter4", f.reveal(t, t1, "1", "secret"))
	require.Equal(t, "4711", f.reveal(t, t1, "1", "others.pin"))
	require.Equal(t, "hunter3", f.reveal(t, t2, "2", "secret"))
	after, err := Safes.Find(t2, f.Store, "2")
	require.NoError(t, err)
	require.Equal(t, before.Stamp, after.Stamp, "the record itself does not change")

	require.NoError(t, f.SealWith(t1, keyring))
	require.Len(t, f.underOlderKeys(t), 2)
	err = docstore.Reseal(t2, f.Store, "safes.2")
	require.ErrorIs(t, err, secret.ErrOpen)
	require.ErrorContains(t, err, "the secret of safes 2 was sealed under a key that is not configured")
	f.putSafe(t, t1, "1", `{"secret":"hunter5","others":{"pin":"******"}}`)
	require.Len(t, f.underOlderKeys(t), 2, "as long as one of its values is under a key that is not configured")
}

func sealedByFormerReplica(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	former, err := docstore.Open(t.Context(), borrowed{f.engine}, f.clock, Safes.Def())
	require.NoError(t, err)
	require.NoError(t, former.SealWith(ctx, mustRing(firstKey.Reveal()+","+secondKey.Reveal())))
	f.clock.advance(time.Minute)
	require.NoError(t, f.SealWith(ctx, both))
	f.putSafe(t, ctx, "1", `{"secret":"hunter2"}`)
	f.clock.advance(time.Minute)
	(&fixture{Store: former}).putSafe(t, ctx, "1", `{"secret":"hunter3"}`)
	require.Equal(t, []docstore.Ref{{Tenant: "t1", ID: "safes.1"}}, f.underOlderKeys(t))
	require.NoError(t, docstore.Reseal(ctx, f.Store, "safes.1"))
	require.NoError(t, docstore.Reseal(ctx, former, "safes.1"), "it changes nothing")
	require.NoError(t, f.SealWith(ctx, second))
	require.Equal(t, "hunter3", f.reveal(t, ctx, "1", "secret"))
}

// borrowed is the engine of another store, which has prepared it and will close it.
type borrowed struct{ docstore.Engine }

func (borrowed) Prepare(context.Context, []*docstore.Def) error { return nil }

// sealedMeanwhile: one goroutine writes new values while another seals existing ones again. The last value written
// stays.
func sealedMeanwhile(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"secret":"0"}`)
	rings := []*secret.Keyring{both, mustRing(firstKey.Reveal() + "," + secondKey.Reveal())}
	for round := range 10 {
		f.clock.advance(time.Second)
		require.NoError(t, f.SealWith(ctx, rings[round%2]))
		value := fmt.Sprint(round)
		errs := together(2, func(i int) error {
			if i == 0 {
				return docstore.Reseal(ctx, f.Store, "safes.1")
			}
			return f.write(ctx, func(tx *docstore.Tx) error {
				v, err := Safes.Load(ctx, tx, "1")
				if err != nil {
					return err
				}
				v.Secret = secret.NewText(value)
				_, err = Safes.Replace(ctx, tx, v)
				return err
			})
		})
		require.NoError(t, errs[1])
		if errs[0] != nil { // the write is tried again
			require.Equal(t, apperr.VersionMismatch, apperr.KindOf(errs[0]), "%v", errs[0])
		}
		require.Equal(t, value, f.reveal(t, ctx, "1", "secret"))
		require.Empty(t, f.underOlderKeys(t))
	}
}

func sealedDryRun(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, docstore.WithDryRun(ctx), "1", `{"secret":"hunter2"}`)
	require.Empty(t, f.reveal(t, ctx, "1", "secret"))
}
