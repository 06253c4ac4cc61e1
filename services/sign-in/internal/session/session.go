// Package session is the domain of sessions: who is signed in, in which browser, and in which applications.
package session

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// Session is a person who is signed in with a browser. It has the same JSON form in the API, in events and in the
// store.
type Session struct {
	docstore.Meta
	UserID       string        `json:"user_id" readOnly:"true" doc:"Who is signed in" example:"1048577"`
	ACR          string        `json:"acr" readOnly:"true" doc:"The class of the sign-in" example:"urn:idplatform:aal:1"`
	AMR          []string      `json:"amr" readOnly:"true" doc:"How the person has signed in (RFC 8176)" example:"[\"pwd\"]"`
	Address      string        `json:"address" readOnly:"true" doc:"Of the last sign-in" example:"192.0.2.7"`
	Browser      string        `json:"browser" readOnly:"true" doc:"Its User-Agent" example:"Mozilla/5.0"`
	Applications []Application `json:"applications" readOnly:"true" doc:"Those that the session has entered"`
	TimeSignedIn clock.Time    `json:"time_signed_in" readOnly:"true" doc:"The last sign-in"`
	TimeUsed     clock.Time    `json:"time_used" readOnly:"true" doc:"The last use, to 5 minutes"`
	TimeExpires  clock.Time    `json:"time_expires" readOnly:"true" doc:"When it ends unless it is used"`
	TimeEnds     clock.Time    `json:"time_ends" readOnly:"true" doc:"When it ends at the latest"`
	// Proofs are what the session rests on: it ends with any of their credentials. See Shown.
	Proofs []proof.Proof `json:"proofs,omitempty" readOnly:"true" doc:"What the person has shown; missing in sessions that an earlier version began"`
	// TimePasswordChanged is that of the user at the sign-in: a later one ends the session.
	TimePasswordChanged clock.Time `json:"time_password_changed" readOnly:"true" nullable:"true" doc:"Of the password that was used"`
}

// Shown are the proofs of the session. One that an earlier version began rests on a password.
func (s *Session) Shown() []proof.Proof {
	if s.Proofs == nil {
		return []proof.Proof{proof.ByPassword(s.TimeSignedIn, s.TimePasswordChanged)}
	}
	return s.Proofs
}

// Application is an application that the session has entered.
type Application struct {
	AppID       string     `json:"app_id" doc:"The application" example:"1048577"`
	Protocol    string     `json:"protocol" doc:"oidc, saml or cas" example:"oidc"`
	TimeEntered clock.Time `json:"time_entered" doc:"The first time"`
}

// Has reports whether the session has entered an application by a protocol.
func (s *Session) Has(appID, protocol string) bool {
	for _, a := range s.Applications {
		if a.AppID == appID && a.Protocol == protocol {
			return true
		}
	}
	return false
}

const (
	byUser    = "user_id"
	byApp     = "app_id"
	byCreated = "time_created"
	// byConnection has the connections through which the person has signed in.
	byConnection = "connection_id"
	// byUpstream has the sessions at other providers that it rests on.
	byUpstream = "upstream_session"
)

var sessions = outbox.Define("session", "/sessions", docstore.Schema[Session]{
	Name: "sessions", Noun: "session", Sortable: []string{byCreated},
	Due: func(s *Session) clock.Time { return s.TimeExpires },
	Indexes: []docstore.Index[Session]{
		docstore.Grouped(docstore.ByText(byUser, func(s *Session) string { return s.UserID }), byCreated),
		docstore.ByList(byApp, func(s *Session) []string {
			ids := make([]string, len(s.Applications))
			for i, a := range s.Applications {
				ids[i] = a.AppID
			}
			return ids
		}),
		docstore.ByList(byConnection, func(s *Session) []string { return proof.Connections(s.Proofs) }),
		docstore.ByList(byUpstream, func(s *Session) []string { return proof.UpstreamSessions(s.Proofs) }),
		docstore.ByNumber(byCreated, func(s *Session) docstore.Value { return docstore.Moment(s.TimeCreated) }),
	},
})

// key is what a browser proves a session with. It has the session's id. It is a document of its own, so that no answer
// and no event has it.
type key struct {
	docstore.Meta
	Hash string `json:"hash"` // SHA-256 of the secret
}

var keys = docstore.Define(docstore.Schema[key]{Name: "session_keys", Noun: "session", NoIfMatch: true})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{sessions.Def(), keys.Def(), browsers.Def()}
}

// newCookie makes the value of a session's cookie, with 256 random bits, and its key.
func newCookie(id string) (cookie, hash string) {
	text := secret.Token(cookieBytes)
	return id + "." + text, Hash(text)
}

const cookieBytes = 32

// Hash is the form in which a browser's secret is kept.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// split returns the session's id and the secret of a cookie.
func split(cookie string) (id, text string, ok bool) {
	id, text, ok = strings.Cut(cookie, ".")
	return id, text, ok && len(id) <= maxID && len(text) == base64.RawURLEncoding.EncodedLen(cookieBytes)
}

const (
	// maxID bounds the ids of sessions, in bytes.
	maxID = 32
	// maxApplications bounds the applications of a session; more than a person uses.
	maxApplications = 500
	// usedEvery is how often the use of a session is noted.
	usedEvery = 5 * time.Minute
	// maxAgent bounds the name of a browser, in bytes.
	maxAgent = 512
)
