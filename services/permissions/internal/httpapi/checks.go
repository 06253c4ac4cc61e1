package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

func (a *api) registerChecks(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "check-auth", Method: http.MethodPost, Path: "/v1/auth-check", Scope: auth.PermissionsCheck,
		Summary: "Check whether an identity may do something",
		Doc: "The object is named by `object_code`, `object_id` or, for an api resource, `uri` with `method`, which " +
			"is then the action. An unknown identity or object is not an error: nothing is allowed. With " +
			"`explain=true` the answer lists every rule that was considered and, if it is not allowed, the nearest " +
			"miss. With the header X-Consistency-Token of a write the check waits for this write; after 5 s the " +
			"answer is 503.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable}, NoReplay: true,
		Request: exampleCheck, Response: exampleDecision,
	}, a.check)
	rest.Handle(s, rest.Op{
		ID: "check-auth-batch", Method: http.MethodPost, Path: "/v1/batch/auth-check", Scope: auth.PermissionsCheck,
		Summary: "Check many things at once",
		Doc: "1…1000 checks, all answered from the same state; `results` are in the order of `checks`. With " +
			"`explain=true` an answer of more than 8 MiB is refused: ask for fewer checks at once.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable}, NoReplay: true,
		Request:  map[string]any{"checks": []any{exampleCheck}},
		Response: map[string]any{"results": []any{exampleDecision}},
	}, a.checkBatch)
	rest.Handle(s, rest.Op{
		ID: "list-auth-check-objects", Method: http.MethodGet, Path: "/v1/auth-check/objects",
		Scope:   auth.PermissionsCheck,
		Summary: "List what an identity may do something with",
		Doc: "In the order of codes. Without `action` each object has all actions that the identity may do with it. " +
			"The list is never cut: the answer is an error if too many records must be examined.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable},
		Response: map[string]any{"items": []any{map[string]any{
			"application_id": "2001", "object_type": "data", "object_id": "1048578", "object_code": "orders",
			"object_name": "Orders", "actions": []string{"read"},
		}}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listObjects)
	rest.Handle(s, rest.Op{
		ID: "list-auth-check-identities", Method: http.MethodGet, Path: "/v1/auth-check/identities",
		Scope:   auth.PermissionsCheck,
		Summary: "List who may do something",
		Doc: "In the order of ids. The list is never cut: the answer is an error if too many records must be " +
			"examined.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable},
		Response: map[string]any{"items": []any{map[string]any{"identity_id": "1048601", "identity_type": "user",
			"identity_name": "li.wei"}},
			"total": 1, "page_num": 1, "page_size": 20},
	}, a.listIdentities)
}

// Check asks whether an identity may do something.
type Check struct {
	IdentityID    string         `json:"identity_id" minLength:"1" maxLength:"64" doc:"Who" example:"1048601"`
	IdentityType  string         `json:"identity_type" enum:"user,node,core_object,application,group,everyone" doc:"What identity_id is the id of"`
	ApplicationID string         `json:"application_id" minLength:"1" maxLength:"64" doc:"The application" example:"2001"`
	ObjectType    string         `json:"object_type" enum:"data,api,ui,app" doc:"What the object is"`
	ObjectCode    string         `json:"object_code,omitempty" maxLength:"256" doc:"Its code; or object_id, or uri and method" example:"orders"`
	ObjectID      string         `json:"object_id,omitempty" maxLength:"64" doc:"Its id"`
	URI           string         `json:"uri,omitempty" maxLength:"2048" doc:"Path of an api resource; it is normalised before it is matched, and a query or fragment cut off"`
	Method        string         `json:"method,omitempty" maxLength:"64" doc:"The action, if uri is given"`
	Action        string         `json:"action,omitempty" maxLength:"64" doc:"Not needed where object_type is app" example:"read"`
	Context       map[string]any `json:"context,omitempty" doc:"The variable context of conditions"`
	Subject       map[string]any `json:"subject_properties,omitempty" doc:"For conditions; overrides the user's own properties"`
	Resource      map[string]any `json:"resource_properties,omitempty" doc:"For conditions; overrides the resource's own properties"`
	ActionProps   map[string]any `json:"action_properties,omitempty" doc:"For conditions"`
}

// asked is a Check as it is decoded: the objects for conditions stay JSON.
type asked struct {
	IdentityID    string          `json:"identity_id"`
	IdentityType  string          `json:"identity_type"`
	ApplicationID string          `json:"application_id"`
	ObjectType    string          `json:"object_type"`
	ObjectCode    string          `json:"object_code"`
	ObjectID      string          `json:"object_id"`
	URI           string          `json:"uri"`
	Method        string          `json:"method"`
	Action        string          `json:"action"`
	Context       json.RawMessage `json:"context"`
	Subject       json.RawMessage `json:"subject_properties"`
	Resource      json.RawMessage `json:"resource_properties"`
	ActionProps   json.RawMessage `json:"action_properties"`
}

// check notes faults that the schema does not cover: the object must be named once.
func (c *asked) check(faults *apperr.Faults) {
	names := 0
	for _, name := range []string{c.ObjectID, c.ObjectCode, c.URI} {
		if name != "" {
			names++
		}
	}
	if c.ObjectType == engine.App {
		faults.Check(names == 0 || names == 1 && c.ObjectID == c.ApplicationID, "object_id",
			"must be absent for object_type app: application_id names the application")
		return
	}
	faults.Check(names == 1, "object_code", "must be given, or object_id or uri, but only one of them")
	faults.Check(c.URI == "" || c.ObjectType == engine.API, "uri", "is only for object_type api")
	faults.Check(c.Method == "" || c.URI != "", "method", "must be given only with uri")
	faults.Check(c.Action != "" || c.Method != "", "action", "must be given")
}

// question converts the check.
func (c *asked) question(now int64, work *engine.Work) engine.Question {
	return engine.Question{
		Identity: engine.Identity{Type: c.IdentityType, ID: c.IdentityID}, ApplicationID: c.ApplicationID,
		ObjectType: c.ObjectType, ObjectID: c.ObjectID, ObjectCode: c.ObjectCode, URI: c.URI,
		Action: cmp.Or(c.Action, c.Method), Now: now, Work: work,
		Context: c.Context, SubjectProperties: c.Subject, ResourceProperties: c.Resource,
		ActionProperties: c.ActionProps,
	}
}

// CheckOptions are the options of one check and of a batch.
type CheckOptions struct {
	Explain docstore.Flag `query:"explain" doc:"true lists every rule considered"`
	Consistency
}

// Consistency is the token of a write.
type Consistency struct {
	Token string `header:"X-Consistency-Token" maxLength:"16384" doc:"Token of a write that the answer must take into account; after 5 s without it the answer is 503"`
}

type checkInput struct {
	CheckOptions
	Body rest.JSON[Check]
}

func (a *api) check(ctx context.Context, in *checkInput) (rest.Raw[Decision], error) {
	var none rest.Raw[Decision]
	var body asked
	if err := body.read(in.Body); err != nil {
		return none, err
	}
	var faults apperr.Faults
	body.check(&faults)
	if err := faults.Err(); err != nil {
		return none, err
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return none, err
	}
	work, done := a.work(ctx)
	defer done()
	q := body.question(a.clock.Now().Millis(), work)
	return rest.Appended[Decision](func(b []byte) ([]byte, error) {
		to := decisions{b: b}
		err := to.answer(ctx, state, &q, in.Explain.Or(false))
		return to.b, err
	})
}

type checkBatchInput struct {
	CheckOptions
	Body rest.JSON[Checks]
}

// Checks is a batch of checks.
type Checks struct {
	Checks []Check `json:"checks" minItems:"1" maxItems:"1000" doc:"1…1000"`
}

// Decisions are in the order of the checks.
type Decisions struct {
	Results []Decision `json:"results" doc:"In the order of the request"`
}

func (a *api) checkBatch(ctx context.Context, in *checkBatchInput) (rest.Raw[Decisions], error) {
	var none rest.Raw[Decisions]
	body := batches.Get().(*batch)
	defer body.release()
	if err := body.read(in.Body); err != nil {
		return none, err
	}
	if err := faultsOf(body.Checks); err != nil {
		return none, err
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return none, err
	}
	work, done := a.work(ctx)
	defer done()
	now := a.clock.Now().Millis()
	return rest.Appended[Decisions](func(b []byte) ([]byte, error) {
		to := decisions{b: append(b, `{"results":[`...)}
		for i := range body.Checks {
			if i > 0 {
				to.b = append(to.b, ',')
			}
			q := body.Checks[i].question(now, work)
			if err := to.answer(ctx, state, &q, in.Explain.Or(false)); err != nil {
				return nil, err
			}
			if len(to.b) > maxExplained && i > 0 {
				return nil, errExplained
			}
		}
		return append(to.b, "]}"...), nil
	})
}

// maxExplained bounds the answer to a batch, which is held until it is sent. A single explanation is always given, and
// the results of a whole batch without explanations have less.
const maxExplained = 8 << 20

var errExplained = apperr.Invalid("explain", "makes an answer of more than %d MiB: ask for fewer checks at once",
	maxExplained>>20)

// batch is Checks as they are decoded. Its memory is reused.
type batch struct {
	Checks []asked `json:"checks"`
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (b *batch) release() {
	clear(b.Checks) // the next checks may lack members
	b.Checks = b.Checks[:0]
	batches.Put(b)
}

// faultsOf returns the faults of a batch of checks.
func faultsOf(checks []asked) error {
	for i := range checks {
		var one apperr.Faults
		if checks[i].check(&one); one.Err() != nil {
			var all apperr.Faults
			for i := range checks {
				checks[i].check(all.Within(apperr.Item("checks", i)))
			}
			return all.Err()
		}
	}
	return nil
}

// Decision answers a check.
type Decision struct {
	Allowed    bool         `json:"allowed" doc:"Whether it may be done"`
	Affect     string       `json:"affect" enum:"affect,deny," doc:"Effect of the rule that decided; empty if no rule did"`
	RuleID     string       `json:"rule_id" doc:"The rule that decides; empty: none" example:"1048600"`
	Via        []Party      `json:"via" doc:"The way from the identity asked about to the one that has the rule"`
	Reason     string       `json:"reason" enum:"granted,denied,not_granted,unknown_identity,unknown_object,unknown_action,identity_disabled,invalid_uri" doc:"Why, in one word"`
	Considered []Considered `json:"considered,omitempty" doc:"With explain: every rule about the object that reaches the identity"`
	Nearest    *Miss        `json:"nearest_miss,omitempty" doc:"With explain, if it is not allowed: the smallest change that would allow it, or the rule that denies it"`
}

// Party is an identity with its name.
type Party struct {
	Type string `json:"type" doc:"What it is" example:"node"`
	ID   string `json:"id" doc:"Its id" example:"1048601"`
	Name string `json:"name" doc:"How it is shown" example:"Finance"`
}

// Considered is a rule about the object that reaches the identity.
type Considered struct {
	RuleID  string  `json:"rule_id" doc:"The rule" example:"1048600"`
	Affect  string  `json:"affect" enum:"affect,deny" doc:"affect allows, deny goes before"`
	Via     []Party `json:"via" doc:"How the identity has it, from itself to who was granted it"`
	Applies bool    `json:"applies" doc:"Whether it counts; if not, reason says why"`
	Why     string  `json:"why" doc:"Why the rule does not apply; for a deny also that its condition cannot be decided"`
}

// Miss is the smallest change that would allow it, or the rule that denies it.
type Miss struct {
	Kind     string `json:"kind" enum:"deny,context,membership,grant" doc:"What is missing, or forbids"`
	Text     string `json:"text" doc:"In words"`
	RuleID   string `json:"rule_id,omitempty" doc:"The rule that forbids, or lacks a value"`
	Identity Party  `json:"identity" doc:"Who has the rule, or who lacks the grant; for kind membership, the node or group to become a member of"`
}

// decisions appends the JSON of Decisions. If via is the same as in the previous Decision its JSON is copied: the
// checks of a batch are often about one identity.
type decisions struct {
	b        []byte
	via      []engine.Party // of the previous Decision
	from, to int            // where its JSON is in b
}

// answer appends the answer to a question.
func (d *decisions) answer(ctx context.Context, s *engine.State, q *engine.Question, explain bool) error {
	if explain {
		e, err := s.Explain(ctx, q)
		if err != nil {
			return answerable(err)
		}
		text, err := rest.Encoded(explained(s, e))
		d.b = append(d.b, text.JSON...)
		return err
	}
	found, err := s.Check(ctx, q)
	if err != nil {
		return answerable(err)
	}
	b := strconv.AppendBool(append(d.b, `{"allowed":`...), found.Allowed)
	effect, id := "", ""
	if found.Rule != nil {
		effect, id = affect(found.Rule), found.Rule.ID
	}
	b = rest.AppendText(append(b, `,"affect":`...), effect)
	b = rest.AppendText(append(b, `,"rule_id":`...), id)
	d.b = append(b, `,"via":[`...)
	d.appendVia(found.Via)
	d.b = append(rest.AppendText(append(d.b, `],"reason":`...), string(found.Reason)), '}')
	return nil
}

func (d *decisions) appendVia(via []engine.Party) {
	if len(via) == 0 {
		return
	}
	b := d.b
	if len(d.via) > 0 && &via[0] == &d.via[0] { // the same list in memory
		d.b = append(b, b[d.from:d.to]...)
		return
	}
	d.via, d.from = via, len(b)
	for i, p := range via {
		if i > 0 {
			b = append(b, ',')
		}
		b = rest.AppendText(append(b, `{"type":`...), p.Type)
		b = rest.AppendText(append(b, `,"id":`...), p.ID)
		b = append(rest.AppendText(append(b, `,"name":`...), p.Name), '}')
	}
	d.b, d.to = b, len(b)
}

// explained converts an explanation.
func explained(s *engine.State, e engine.Explanation) Decision {
	d := Decision{Allowed: e.Allowed, Reason: string(e.Reason), Via: parties(e.Via)}
	if e.Rule != nil {
		d.RuleID, d.Affect = e.Rule.ID, affect(e.Rule)
	}
	for _, c := range e.Considered {
		d.Considered = append(d.Considered, Considered{c.Rule.ID, affect(c.Rule), parties(c.Via), c.Applies, c.Why})
	}
	if e.Nearest != nil {
		d.Nearest = &Miss{Kind: e.Nearest.Kind, Text: e.Nearest.Text, Identity: party(s, e.Nearest.Identity)}
		if e.Nearest.Rule != nil {
			d.Nearest.RuleID = e.Nearest.Rule.ID
		}
	}
	return d
}

// affect is the effect of a rule in the API.
func affect(r *engine.Rule) string {
	if r.Deny {
		return "deny"
	}
	return "affect"
}

func parties(via []engine.Party) []Party {
	list := make([]Party, len(via))
	for i, p := range via {
		list[i] = Party{p.Type, p.ID, p.Name}
	}
	return list
}

func party(s *engine.State, who engine.Identity) Party { return Party{who.Type, who.ID, s.Label(who)} }

var exampleCheck = map[string]any{
	"identity_id": "1048601", "identity_type": "user", "application_id": "2001", "object_type": "data",
	"object_code": "orders", "action": "read",
}

var exampleDecision = map[string]any{
	"allowed": true, "affect": "affect", "rule_id": "1048600", "reason": "granted",
	"via": []any{map[string]any{"type": "user", "id": "1048601", "name": "li.wei"},
		map[string]any{"type": "node", "id": "1048579", "name": "Finance"}},
}
