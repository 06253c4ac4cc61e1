// Package domain is the domain of verified mail domains: whose login names lead to a connection.
//
//	            Verify finds the record
//	pending ─────────────────────────────▶ verified
//	        ◀─────────────────────────────
//	      the record is missing for a week
//	      or the name server silent for four
package domain

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
	"github.com/idplatform/idplatform/services/questions"
)

// Domain is the record of a mail domain. It has the same JSON form in the API, in events and in the store.
type Domain struct {
	docstore.Meta
	ConnectionID string `json:"connection_id" readOnly:"true" doc:"The connection" example:"1048577"`
	Profile
	Status       string     `json:"status" readOnly:"true" enum:"pending,verified" doc:"Whether the DNS record was found"`
	RecordName   string     `json:"record_name" readOnly:"true" doc:"The TXT record to publish" example:"_idplatform.acme.test"`
	RecordValue  string     `json:"record_value" readOnly:"true" doc:"Its text" example:"idplatform-verification=ABCD"`
	Failure      string     `json:"failure" readOnly:"true" doc:"Why the last check failed" example:"there is no such TXT record"`
	TimeVerified clock.Time `json:"time_verified" readOnly:"true" nullable:"true" doc:"Since when it is verified"`
	TimeChecked  clock.Time `json:"time_checked" readOnly:"true" nullable:"true" doc:"When it was checked last"`
	TimeMissing  clock.Time `json:"time_missing" readOnly:"true" nullable:"true" doc:"Since when checks have not found the record"`
}

// Profile holds the members that clients can set.
type Profile struct {
	Domain        string   `json:"domain" required:"true" doc:"Such as acme.test; no other connection can have it" example:"acme.test"`
	Enforce       string   `json:"enforce" enum:"1,0" doc:"1: no sign-in by password for users whose username or email is of the domain, in applications that offer the connection" example:"0"`
	ExemptUserIDs []string `json:"exempt_user_ids" doc:"Up to 20 users for whom enforce does not hold"`
}

// The states.
const (
	Pending  = "pending"
	Verified = "verified"
)

const (
	on  = "1"
	off = "0"
)

const (
	maxOfConnection = 100
	maxExempt       = 20
	maxDomain       = 253 // characters
	// checkEvery is how often the record of a verified domain is looked up, and checkMissing how often if the last
	// check has not found it.
	checkEvery   = 7 * 24 * time.Hour
	checkMissing = 24 * time.Hour
	// After missingFor without the record, or silentFor without an answer, a domain is not verified any more.
	missingFor = 7 * 24 * time.Hour
	silentFor  = 28 * 24 * time.Hour
	// patience is how long a lookup lasts.
	patience = 5 * time.Second
)

const (
	byConnection  = "connection"
	byDomain      = "domain"
	byTimeCreated = "time_created"
)

var domains = outbox.Define("connection_domain", "/idp/connection-domains", docstore.Schema[Domain]{
	Name: "connection_domains", Noun: "domain", Sortable: []string{byTimeCreated},
	Due: (*Domain).due,
	Indexes: []docstore.Index[Domain]{
		docstore.ByText(byConnection, func(d *Domain) string { return d.ConnectionID }),
		docstore.Unique(docstore.ByText(byDomain, func(d *Domain) string { return d.Domain }), "domain"),
		docstore.ByNumber(byTimeCreated, func(d *Domain) docstore.Value { return docstore.Moment(d.TimeCreated) }),
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{domains.Def()} }

// due is when the record is looked up again; never for a domain that is not verified.
func (d *Domain) due() clock.Time {
	switch {
	case d.Status != Verified:
		return clock.Time{}
	case !d.TimeMissing.IsZero():
		return d.TimeChecked.Add(checkMissing)
	}
	return d.TimeChecked.Add(checkEvery)
}

// name is a domain name of at least two labels, in the form of dnsname.Key.
var name = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$`)

// check sets defaults and reports every fault.
func (p *Profile) check(faults *apperr.Faults) {
	p.Domain = dnsname.Key(strings.TrimSuffix(strings.TrimSpace(p.Domain), "."))
	faults.Check(len(p.Domain) <= maxDomain && name.MatchString(p.Domain), "domain",
		"must be a domain name such as acme.test")
	if p.Enforce == "" {
		p.Enforce = off
	}
	faults.Check(p.Enforce == on || p.Enforce == off, "enforce", `must be "1" or "0"`)
	if p.ExemptUserIDs == nil {
		p.ExemptUserIDs = []string{}
	}
	faults.Check(len(p.ExemptUserIDs) <= maxExempt, "exempt_user_ids", "must have at most %d items", maxExempt)
}

// Deps are what Domains need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus
	// LookupTXT returns the TXT records of a name, as net.Resolver's does.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
}

// Domains are the use cases.
type Domains struct{ Deps }

// New makes the use cases.
func New(d Deps) *Domains { return &Domains{d} }

// Doc is a domain as read or written.
type Doc = docstore.Doc[Domain]

// Path is the place of a domain.
type Path struct{ ConnectionID, ID string }

// List returns a page of the domains of a connection. The error is apperr.NotFound or InvalidParameters (paging).
func (s *Domains) List(ctx context.Context, connectionID string, p docstore.Paging) (docstore.Page[Domain], error) {
	if _, err := connection.Find(ctx, s.Store, connectionID); err != nil {
		return docstore.Page[Domain]{}, err
	}
	return domains.List(ctx, s.Store, docstore.Eq(byConnection, docstore.Text(connectionID)), p)
}

// Get returns a domain. The error is apperr.NotFound.
func (s *Domains) Get(ctx context.Context, at Path) (Doc, error) {
	doc, err := domains.Find(ctx, s.Store, at.ID)
	if err != nil {
		return Doc{}, err
	}
	d, err := doc.Value()
	if err == nil && d.ConnectionID != at.ConnectionID {
		err = apperr.Missing("domain")
	}
	return doc, err
}

// Create adds a domain, which is pending. The error is apperr.NotFound (there is no such connection),
// InvalidParameters, AlreadyExists, InvalidState (the connection has too many, or people cannot sign in through its
// provider) or Unavailable.
func (s *Domains) Create(ctx context.Context, connectionID string, draft Profile) (Doc, error) {
	of, err := connection.Find(ctx, s.Store, connectionID)
	if err != nil {
		return Doc{}, err
	}
	if !slices.Contains(questions.SignInProviders, of.ProviderCode) {
		return Doc{}, apperr.New(apperr.InvalidState, "people cannot sign in through the provider of the connection")
	}
	if err := s.checkProfile(ctx, &draft, nil); err != nil {
		return Doc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	d := Domain{
		ConnectionID: connectionID, Profile: draft, Status: Pending, RecordName: "_idplatform." + draft.Domain,
		RecordValue: "idplatform-verification=" + rand.Text(),
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		var faults apperr.Faults
		at := func(int) string { return "connection_id" }
		if err := connection.Exist(ctx, tx, []string{connectionID}, at, &faults); err != nil || faults.Err() != nil {
			return Doc{}, errors.Join(err, faults.Err())
		}
		err := domains.CheckLimit(ctx, tx, docstore.Eq(byConnection, docstore.Text(connectionID)), maxOfConnection,
			"a connection has at most %d domains")
		if err != nil {
			return Doc{}, err
		}
		one := d
		one.Meta = docstore.Meta{ID: id}
		return domains.Insert(ctx, tx, &one)
	})
}

// checkProfile checks a profile, and that new exempt users exist. The error is apperr.InvalidParameters or Unavailable.
func (s *Domains) checkProfile(ctx context.Context, p *Profile, known []string) error {
	var faults apperr.Faults
	p.check(&faults)
	if err := faults.Err(); err != nil {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(p.ExemptUserIDs), func(id string) bool {
		return slices.Contains(known, id)
	})
	if len(fresh) == 0 {
		return nil
	}
	exist, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: fresh})
	if err != nil {
		return err
	}
	for i, id := range p.ExemptUserIDs {
		there := !slices.Contains(fresh, id) || slices.Contains(exist.IDs, id)
		faults.Check(there, apperr.Item("exempt_user_ids", i), "must be a user's id")
	}
	return faults.Err()
}

// Update applies edit to a domain, whose name stays. The error is apperr.NotFound, InvalidParameters, VersionMismatch
// or Unavailable.
func (s *Domains) Update(ctx context.Context, at Path, edit func(*Profile) error) (Doc, error) {
	doc, err := s.Get(ctx, at)
	if err != nil {
		return Doc{}, err
	}
	before, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	after := before.Profile
	after.ExemptUserIDs = slices.Clone(after.ExemptUserIDs)
	if err := edit(&after); err != nil {
		return Doc{}, err
	}
	if err := s.checkProfile(ctx, &after, before.ExemptUserIDs); err != nil {
		return Doc{}, err
	}
	if after.Domain != before.Domain {
		return Doc{}, apperr.Invalid("domain", "cannot be changed")
	}
	return domains.Edit(ctx, s.Store, at.ID, func(_ *docstore.Tx, d *Domain) error {
		if !reflect.DeepEqual(d.Profile, before.Profile) {
			return docstore.Mismatch(d.Version)
		}
		d.Profile = after
		return nil
	})
}

// Delete deletes a domain. The error is apperr.NotFound or VersionMismatch.
func (s *Domains) Delete(ctx context.Context, at Path) (docstore.Deleted, error) {
	if _, err := s.Get(ctx, at); err != nil {
		return docstore.Deleted{}, err
	}
	return domains.Remove(ctx, s.Store, at.ID, func(*docstore.Tx, *Domain) error { return nil })
}

// OnDelete deletes the domains of a connection in the transaction that deletes it.
func OnDelete(ctx context.Context, tx *docstore.Tx, connectionID string) error {
	return domains.DeleteWhere(ctx, tx, docstore.Eq(byConnection, docstore.Text(connectionID)))
}

// Verify looks for the DNS record, and stores what became of it. The error is apperr.NotFound or VersionMismatch.
func (s *Domains) Verify(ctx context.Context, at Path) (Doc, error) {
	doc, err := s.Get(ctx, at)
	if err != nil || docstore.IsDryRun(ctx) {
		return doc, err
	}
	return s.verify(ctx, doc)
}

// Recheck is Verify for a verified domain that is due.
func (s *Domains) Recheck(ctx context.Context, id string) error {
	doc, err := domains.Find(ctx, s.Store, id)
	if err == nil {
		_, err = s.verify(ctx, doc)
	}
	return err
}

// Due lists the domains whose record is to be looked up.
var Due = domains.Due

func (s *Domains) verify(ctx context.Context, doc Doc) (Doc, error) {
	before, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	failure, at := s.failureOf(ctx, before), s.Store.Now()
	after := *before
	after.checked(failure, at)
	action := "checked"
	switch {
	case after.Status == before.Status:
	case after.Status == Verified:
		action = "verified"
	default:
		action = "unverified"
	}
	return domains.As(action).Edit(ctx, s.Store, before.ID, func(_ *docstore.Tx, d *Domain) error {
		if d.Status != before.Status || d.TimeMissing != before.TimeMissing { // by another check
			return docstore.Mismatch(d.Version)
		}
		d.checked(failure, at)
		return nil
	})
}

// checked sets what a check has found, by its failure if there is one.
func (d *Domain) checked(failure string, at clock.Time) {
	d.TimeChecked, d.Failure = at, failure
	grace := silentFor
	if failure == notThere {
		grace = missingFor
	}
	switch {
	case failure == "" && d.Status != Verified:
		d.Status, d.TimeVerified = Verified, at
	case failure == "":
		d.TimeMissing = clock.Time{}
	case d.Status != Verified:
	case d.TimeMissing.IsZero():
		d.TimeMissing = at
	case !at.Before(d.TimeMissing.Add(grace)):
		d.Status, d.TimeVerified, d.TimeMissing = Pending, clock.Time{}, clock.Time{}
	}
}

// notThere is the failure of a check that has found no such record.
const notThere = "there is no such TXT record"

// failureOf looks up the record of a domain. It returns why it has not found it, or an empty text.
func (s *Domains) failureOf(ctx context.Context, d *Domain) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	texts, err := s.LookupTXT(ctx, d.RecordName+".") // without the search list
	if fault, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !fault.IsNotFound) {
		return "the name server does not answer"
	}
	if !slices.Contains(texts, d.RecordValue) {
		return notThere
	}
	return ""
}

// VerifiedOf returns the verified domains of some connections, by their ids.
func VerifiedOf(ctx context.Context, r *docstore.Store, connectionIDs []string) (
	map[string][]questions.ConnectionDomain, error,
) {
	values := make([]docstore.Value, len(connectionIDs))
	for i, id := range connectionIDs {
		values[i] = docstore.Text(id)
	}
	all := map[string][]questions.ConnectionDomain{}
	for after := ""; ; {
		page, err := domains.Page(ctx, r, docstore.Query{
			Filter: docstore.In(byConnection, values...), Limit: maxOfConnection, After: after,
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Docs {
			d, err := page.Docs[i].Value()
			if err != nil {
				return nil, err
			}
			if d.Status == Verified {
				all[d.ConnectionID] = append(all[d.ConnectionID], questions.ConnectionDomain{
					Name: d.Domain, Enforced: d.Enforce == on, ExemptUserIDs: d.ExemptUserIDs,
				})
			}
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}
