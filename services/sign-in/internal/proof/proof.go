// Package proof says what proofs of a person are worth together: which class of sign-in they reach, and which steps of
// a login they complete. It has no state, and calls no service.
//
// A proof comes over a channel, such as a password or a key. Who has stolen a channel can make each of its proofs: so
// two proofs over one channel never count as two.
package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Kind is what a proof rests on.
type Kind string

// The kinds.
const (
	Knows Kind = "knows" // a secret in the person's head
	Has   Kind = "has"   // a thing
	Is    Kind = "is"    // a finger, a face
)

// Proof is one way in which a person has shown who they are. It has the same JSON form in the API, in events and in the
// store.
type Proof struct {
	Method string `json:"method" doc:"The type of the method" example:"password"`
	// Kinds is more than one where a proof shows several at once: a passkey that has verified its user, or another
	// provider's sign-in that is trusted to have had two factors.
	Kinds   []Kind     `json:"kinds" enum:"knows,has,is" doc:"What it rests on" example:"[\"knows\"]"`
	Channel string     `json:"channel" doc:"How it came: password, app, key, mail, sms or upstream:<connection>. Two proofs over one channel never count as two" example:"password"`
	AMR     []string   `json:"amr" doc:"Its names in RFC 8176" example:"[\"pwd\"]"`
	Time    clock.Time `json:"time" doc:"When it was shown"`
	// Credential is Password, OfFactor or OfLink: ids of two services can be the same.
	Credential string     `json:"credential" doc:"Which credential was shown: password, factor:<id> or link:<id of the stored credential>. The session ends when it is replaced or deleted" example:"password"`
	TimeSet    clock.Time `json:"time_set" nullable:"true" doc:"When the credential was set; null: it is not known"`
	// UpstreamSession is HashSession of the other provider's session, if it has told it.
	UpstreamSession string `json:"upstream_session,omitempty" doc:"SHA-256 over the connection and the session (sid) at another provider. The session ends when the provider says that it has ended there"`
}

// The classes of a sign-in, as acr values.
const (
	OneFactor         = "urn:idplatform:aal:1"
	TwoFactors        = "urn:idplatform:aal:2"
	PhishingResistant = "phr"
)

// classes are the classes from the lowest.
var classes = []string{OneFactor, TwoFactors, PhishingResistant}

// The types of methods. Password is the channel of the password, and its credential, too: a person has one.
const (
	Password     = "password"
	App          = "otp" // an authenticator app
	Passkey      = "webauthn"
	RecoveryCode = "recovery_code" // takes the place of an app or a passkey that is lost
	// Social and Enterprise are sign-ins at other providers. The methods of steps have the channels of the connections.
	Social     = "social"
	Enterprise = "enterprise"
)

// The channels.
const (
	channelApp   = "app"
	channelCodes = "codes"
	channelKey   = "key" // of passkeys
)

// OfFactor is the credential of a factor with an id.
func OfFactor(id string) string { return "factor:" + id }

// OfLink is the credential of a link to another provider, by the id of the stored credential.
func OfLink(id string) string { return "link:" + id }

// IsLink reports whether a credential is OfLink.
func IsLink(credential string) bool { return strings.HasPrefix(credential, OfLink("")) }

// channelUpstream begins the channels of other providers.
const channelUpstream = "upstream:"

// Upstream is the channel of a connection to another provider. In the methods of a step it stands for a sign-in there.
func Upstream(connectionID string) string { return channelUpstream + connectionID }

// ConnectionOf is the id of the connection whose channel is given; ok is false if it is none of a connection.
func ConnectionOf(channel string) (id string, ok bool) {
	return strings.CutPrefix(channel, channelUpstream)
}

// Connections are the ids of the connections through which some proofs have come.
func Connections(proofs []Proof) []string {
	var ids []string
	for _, p := range proofs {
		if id, ok := ConnectionOf(p.Channel); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// HashSession is the form in which the id of a session at another provider is kept.
func HashSession(connectionID, session string) string {
	sum := sha256.Sum256([]byte(connectionID + " " + session))
	return hex.EncodeToString(sum[:])
}

// UpstreamSessions are the sessions at other providers that some proofs rest on.
func UpstreamSessions(proofs []Proof) []string {
	var all []string
	for _, p := range proofs {
		if p.UpstreamSession != "" {
			all = append(all, p.UpstreamSession)
		}
	}
	return all
}

// isUpstream reports whether a channel, or a method of a step, is that of a connection.
func isUpstream(channel string) bool { return strings.HasPrefix(channel, channelUpstream) }

// ByUpstream is the proof by a sign-in at another provider, through a connection. It counts as one factor, unless the
// provider is trusted to have asked for two: then amr says how.
func ByUpstream(now clock.Time, method, connectionID, linkID string, two bool, amr []string) Proof {
	p := Proof{
		Method: method, Kinds: []Kind{Knows}, Channel: Upstream(connectionID), AMR: []string{}, Time: now,
		Credential: OfLink(linkID),
	}
	if two {
		p.Kinds, p.AMR = append(p.Kinds, Has), slices.Clone(amr)
	}
	return p
}

// by is what the methods of steps call it by: the type of its method, or the channel of a connection.
func (p Proof) by() string {
	if isUpstream(p.Channel) {
		return p.Channel
	}
	return p.Method
}

// ByApp is the proof by a code of an authenticator app, which is a factor that was set up at a time.
func ByApp(now clock.Time, factorID string, set clock.Time) Proof {
	return Proof{
		Method: App, Kinds: []Kind{Has}, Channel: channelApp, AMR: []string{"otp"}, Time: now,
		Credential: OfFactor(factorID), TimeSet: set,
	}
}

// ByRecoveryCode is the proof by one of the recovery codes that were made at a time.
func ByRecoveryCode(now clock.Time, factorID string, set clock.Time) Proof {
	return Proof{
		Method: RecoveryCode, Kinds: []Kind{Has}, Channel: channelCodes, AMR: []string{"otp"}, Time: now,
		Credential: OfFactor(factorID), TimeSet: set,
	}
}

// ByPasskey is the proof by a passkey that was set up at a time. verified says that it has verified its user, by a
// finger or a PIN; synced that it is kept on several devices.
func ByPasskey(now clock.Time, factorID string, set clock.Time, verified, synced bool) Proof {
	p := Proof{
		Method: Passkey, Kinds: []Kind{Has}, Channel: channelKey, AMR: []string{"hwk"}, Time: now,
		Credential: OfFactor(factorID), TimeSet: set,
	}
	if synced {
		p.AMR[0] = "swk"
	}
	if verified {
		p.Kinds, p.AMR = append(p.Kinds, Is), append(p.AMR, "user")
	}
	return p
}

// examples are proofs by each method, to find out what one more would reach.
var examples = map[string]Proof{
	Password: ByPassword(clock.Time{}, clock.Time{}), App: ByApp(clock.Time{}, "", clock.Time{}),
	RecoveryCode: ByRecoveryCode(clock.Time{}, "", clock.Time{}),
	Passkey:      ByPasskey(clock.Time{}, "", clock.Time{}, false, false),
}

// Example is a proof by a method; false if nobody can have one yet.
func Example(method string) (Proof, bool) {
	if id, ok := ConnectionOf(method); ok {
		return ByUpstream(clock.Time{}, Enterprise, id, id, false, nil), true
	}
	p, ok := examples[method]
	return p, ok
}

// IsFactor reports whether a method is a second factor, or takes the place of one.
func IsFactor(method string) bool {
	return method == App || method == Passkey || method == RecoveryCode
}

// Whenever is later than any time: what rests on a credential that was deleted was set before it.
var Whenever = clock.FromMillis(1 << 52)

// Since is when the oldest of some proofs was shown.
func Since(proofs []Proof) (oldest clock.Time) {
	for i, p := range proofs {
		if i == 0 || p.Time.Before(oldest) {
			oldest = p.Time
		}
	}
	return oldest
}

// ByPassword is the proof by a password that was set at a time, which may be zero.
func ByPassword(now, set clock.Time) Proof {
	return Proof{
		Method: Password, Kinds: []Kind{Knows}, Channel: Password, AMR: []string{"pwd"}, Time: now,
		Credential: Password, TimeSet: set,
	}
}

// Add adds a proof. It takes the place of an earlier one by the same credential.
func Add(proofs []Proof, p Proof) []Proof {
	others := slices.DeleteFunc(slices.Clone(proofs), func(other Proof) bool {
		return other.Channel == p.Channel && other.Credential == p.Credential
	})
	return append(others, p)
}

// TimeSet is when the credential of a proof was set; zero without such a proof, or if that is not known.
func TimeSet(proofs []Proof, credential string) clock.Time {
	for _, p := range proofs {
		if p.Credential == credential {
			return p.TimeSet
		}
	}
	return clock.Time{}
}

// RestsOn reports whether a proof is by a credential that was set before a time. If it is not known when, it was
// before.
func RestsOn(proofs []Proof, credential string, before clock.Time) bool {
	return slices.ContainsFunc(proofs, func(p Proof) bool {
		return p.Credential == credential && p.TimeSet.Before(before)
	})
}

// Class is the class that proofs reach: PhishingResistant by two factors of which one is a passkey, TwoFactors by two
// kinds over two channels or by one proof of two kinds, and otherwise OneFactor; "" without proofs.
func Class(proofs []Proof) string {
	if len(proofs) == 0 {
		return ""
	}
	class := OneFactor
	for i, p := range proofs {
		two := len(p.Kinds) > 1 || slices.ContainsFunc(proofs[:i], func(other Proof) bool { return differ(p, other) })
		switch {
		case !two:
		case slices.ContainsFunc(proofs, func(p Proof) bool { return p.Channel == channelKey }):
			return PhishingResistant
		default:
			class = TwoFactors
		}
	}
	return class
}

// differ reports whether two proofs are of different kinds over different channels.
func differ(p, q Proof) bool {
	return p.Channel != q.Channel && slices.ContainsFunc(p.Kinds, func(a Kind) bool {
		return slices.ContainsFunc(q.Kinds, func(b Kind) bool { return a != b })
	})
}

// Meets reports whether a class is as high as a wanted one. A class that is not known is met by none.
func Meets(class, wanted string) bool {
	want := slices.Index(classes, wanted)
	return want >= 0 && slices.Index(classes, class) >= want
}

// AMR lists the methods of proofs by their names of RFC 8176, with mfa where they are two factors.
func AMR(proofs []Proof) []string {
	var names []string
	for _, p := range proofs {
		names = append(names, p.AMR...)
	}
	if Meets(Class(proofs), TwoFactors) {
		names = append(names, "mfa")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Step is a step of a login: a proof by any of its methods completes it.
type Step struct {
	Required bool // of everybody; others are of those who can complete them
	Methods  []string
	// NoSetUp keeps people from setting up a factor for the step. Offer lets those who have none set one up, or go on
	// without; it is for steps that are not required.
	NoSetUp, Offer bool
	// Second are those of Methods with which no sign-in begins.
	Second []string
	// Verified says that a passkey completes the step only if it has verified its user.
	Verified bool
}

// takes reports whether a proof completes the step.
func (s *Step) takes(p Proof) bool {
	return slices.Contains(s.Methods, p.by()) && !(s.Verified && p.unverified())
}

// unverified reports whether it is by a passkey that has not verified its user.
func (p Proof) unverified() bool { return p.Method == Passkey && !slices.Contains(p.Kinds, Is) }

// Left returns the indexes of the steps that are not complete, in their order. Each channel completes at most one step.
// Proofs are given to the steps so that none is left that could be complete without another one being left that comes
// before: of the required ones first, then of the others.
func Left(steps []Step, proofs []Proof) (left []int) {
	completes := map[string]int{} // the step that each channel completes
	var order []int
	for _, required := range []bool{true, false} {
		for i, step := range steps {
			if step.Required == required {
				order = append(order, i)
			}
		}
	}
	for _, i := range order {
		if !complete(i, steps, proofs, completes, map[string]bool{}) {
			left = append(left, i)
		}
	}
	slices.Sort(left)
	return left
}

// complete finds a channel that completes a step, and gives other steps other channels for it where they can have one.
func complete(i int, steps []Step, proofs []Proof, completes map[string]int, tried map[string]bool) bool {
	for _, p := range proofs {
		if tried[p.Channel] || !steps[i].takes(p) {
			continue
		}
		tried[p.Channel] = true
		other, taken := completes[p.Channel]
		if !taken || complete(other, steps, proofs, completes, tried) {
			completes[p.Channel] = i
			return true
		}
	}
	return false
}
