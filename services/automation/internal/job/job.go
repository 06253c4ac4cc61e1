package job

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/pkg/webhook"
)

// The states of a job.
const (
	scheduled = "scheduled"
	suspended = "suspended"
	finished  = "finished"
)

const (
	enabled  = "1"
	disabled = "0"

	maxJobs        = 20_000   // of a tenant
	maxName        = 128      // characters
	maxDescription = 1024     // characters
	maxPayload     = 64 << 10 // bytes
	maxURL         = 2048     // bytes
	maxSubject     = 128      // bytes
	defaultTimeout = 60       // seconds
	maxTimeout     = 24 * 3600
	maxRetries     = 20
	maxBackoff     = 3600 // seconds
)

// Job is a job record. Its JSON form is the API's, the events' and the store's.
type Job struct {
	docstore.Meta
	Profile
	State string `json:"state" required:"false" readOnly:"true" enum:"scheduled,suspended,finished" doc:"suspended: it does not fire; finished: it never fires again"`

	// The scheduler sets these. They do not raise the version: see docstore.Schema.Counts.
	NextFireTime Moment `json:"next_fire_time" required:"false" nullable:"true" readOnly:"true" doc:"null: none"`
	LastSubJobID Number `json:"last_sub_job_id" required:"false" readOnly:"true" doc:"Its last run; empty: none"`
	Fired        int64  `json:"fired" required:"false" readOnly:"true" doc:"How many runs the job has had"`

	ScheduledSince clock.Time `json:"scheduled_since" required:"false" readOnly:"true" doc:"When the schedule was set or resumed"`
}

// Profile holds the members that clients set.
type Profile struct {
	Code           string   `json:"code" doc:"1…64 letters, digits or . _ -; unique" example:"nightly-report"`
	Name           string   `json:"name" doc:"1…128 characters" example:"Nightly report"`
	Description    string   `json:"description" required:"false" doc:"Up to 1024 characters"`
	Schedule       Schedule `json:"schedule" doc:"When it fires"`
	Target         Target   `json:"target" doc:"What it runs"`
	TimeoutSeconds int64    `json:"timeout_seconds" required:"false" doc:"Of one attempt: 1…86400; 60 if absent"`
	Retry          Retry    `json:"retry" required:"false" doc:"What happens when a run fails"`
	Concurrency    string   `json:"concurrency" required:"false" enum:"allow,skip,queue" doc:"What happens when the job fires while a run is unfinished: another run starts (allow), none does (skip), or it waits (queue); allow if absent"`
	Misfire        string   `json:"misfire" required:"false" enum:"fire_once,skip" doc:"What happens to times that were missed by more than a minute: one run for all (fire_once) or none (skip); fire_once if absent"`
	Status         string   `json:"status" required:"false" enum:"1,0" doc:"0 disables the job; 1 if absent"`
}

// Retry says how often, and after which pauses, a failed run is tried again.
type Retry struct {
	Max            int64 `json:"max" required:"false" doc:"Attempts after the first: 0…20"`
	BackoffSeconds int64 `json:"backoff_seconds" required:"false" doc:"Pause after the first attempt: 0…3600; it doubles with each attempt, up to an hour"`
}

// The types of a target.
const (
	Webhook  = "webhook"
	NATS     = "nats"
	Function = "function"
)

// Target is what a job runs.
type Target struct {
	Type       string         `json:"type" enum:"webhook,nats,function" doc:"webhook: a request; nats: a message; function: a call"`
	URL        string         `json:"url,omitempty" doc:"For webhook: status 202 accepts a run, another 2xx ends it with the body as its result" example:"https://reports.acme.test/run"`
	Subject    string         `json:"subject,omitempty" doc:"For nats: runs go to idp.jobs.<tenant>.<subject>"`
	FunctionID string         `json:"function_id,omitempty" doc:"For function: its id; the function cannot be deleted while a job has it as its target"`
	Payload    jsontext.Value `json:"payload,omitempty" doc:"Up to 64 KiB"`
	Secret     secret.Text    `json:"secret,omitzero" doc:"For webhook: signs the requests (Standard Webhooks). Shown as ******"`
}

// Moment is a time that the scheduler sets, in milliseconds; 0 means none. It is an integer because docstore's Counts
// are.
type Moment int64

func momentOf(t clock.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.Millis())
}

func (m Moment) time() clock.Time {
	if m == 0 {
		return clock.Time{}
	}
	return clock.FromMillis(int64(m))
}

// MarshalJSON writes the form of clock.Time.
func (m Moment) MarshalJSON() ([]byte, error) { return m.time().MarshalJSON() }

// UnmarshalJSON is the inverse of MarshalJSON.
func (m *Moment) UnmarshalJSON(b []byte) error {
	var t clock.Time
	err := t.UnmarshalJSON(b)
	*m = momentOf(t)
	return err
}

// Number is an id that the scheduler sets; 0 means none. It is an integer for the same reason as Moment.
type Number int64

// MarshalJSON writes the id as a string, which is empty for none.
func (n Number) MarshalJSON() ([]byte, error) {
	if n == 0 {
		return []byte(`""`), nil
	}
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(n), 10)), nil
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (n *Number) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "" {
		*n = 0
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	*n = Number(value)
	return err
}

const (
	byCode         = "code"
	byName         = "name"
	byState        = "state"
	byTarget       = "target"
	byFunction     = "function"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
	byNextFire     = "next_fire_time"
)

var jobs = outbox.Define("job", "/jobs", docstore.Schema[Job]{
	Name: "jobs", Noun: "job",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified, byNextFire},
	Indexes: slices.Concat([]docstore.Index[Job]{
		docstore.Unique(docstore.ByText(byCode, func(j *Job) string { return j.Code }), "code"),
		docstore.ByText(byName, func(j *Job) string { return textindex.Key(j.Name) }),
		docstore.ByText(byState, func(j *Job) string { return j.State }),
		docstore.ByText(byTarget, func(j *Job) string { return j.Target.Type }),
		docstore.ByText(byFunction, func(j *Job) string { return j.Target.FunctionID }),
		docstore.ByNumber(byTimeCreated, func(j *Job) docstore.Value { return docstore.Moment(j.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(j *Job) docstore.Value { return docstore.Moment(j.TimeModified) }),
		docstore.ByNumber(byNextFire, func(j *Job) docstore.Value { return docstore.Moment(j.NextFireTime.time()) }),
	}, textindex.KeywordIndexes(func(j *Job) []string { return []string{j.Name, j.Code} })),
	Due: func(j *Job) clock.Time { return j.NextFireTime.time() },
	Counts: func(j *Job) []*int64 {
		return []*int64{(*int64)(&j.NextFireTime), (*int64)(&j.LastSubJobID), &j.Fired}
	},
	Sealed: func(j *Job) []docstore.Sealed {
		route := docstore.Route{"target.type": j.Target.Type, "target.url": j.Target.URL}
		return []docstore.Sealed{docstore.Seal(targetSecret, &j.Target.Secret, route)}
	},
})

const targetSecret = "target.secret"

// Doc is a job as read or written.
type Doc = docstore.Doc[Job]

var subject = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// check sets defaults and reports every fault. before is the job's present target, the zero Target for a new job.
func (p *Profile) check(now clock.Time, before Profile) error {
	var faults apperr.Faults
	faults.Code("code", p.Code)
	faults.Name("name", p.Name, maxName)
	faults.Prose("description", p.Description, maxDescription)
	p.Schedule.check(faults.Within("schedule"), now, before.Schedule)
	p.Target.check(faults.Within("target"), before.Target)
	if p.TimeoutSeconds == 0 {
		p.TimeoutSeconds = defaultTimeout
	}
	faults.Check(p.TimeoutSeconds >= 1 && p.TimeoutSeconds <= maxTimeout, "timeout_seconds", "must lie in 1…%d",
		maxTimeout)
	faults.Check(p.Retry.Max >= 0 && p.Retry.Max <= maxRetries, "retry.max", "must lie in 0…%d", maxRetries)
	faults.Check(p.Retry.BackoffSeconds >= 0 && p.Retry.BackoffSeconds <= maxBackoff, "retry.backoff_seconds",
		"must lie in 0…%d", maxBackoff)
	oneOf(&faults, "concurrency", &p.Concurrency, allow, skip, queue)
	oneOf(&faults, "misfire", &p.Misfire, fireOnce, skip)
	faults.Switch("status", &p.Status, enabled)
	return faults.Err()
}

// The values of Concurrency (allow, skip, queue) and of Misfire (fire_once, skip).
const (
	allow    = "allow"
	skip     = "skip"
	queue    = "queue"
	fireOnce = "fire_once"
)

// oneOf checks that a value is in the list. An absent value becomes the first of the list.
func oneOf(faults *apperr.Faults, member string, value *string, list ...string) {
	if *value == "" {
		*value = list[0]
	}
	faults.Check(slices.Contains(list, *value), member, "must be one of %s", strings.Join(list, ", "))
}

func (t *Target) check(faults *apperr.Faults, before Target) {
	members := map[string]string{Webhook: "url", NATS: "subject", Function: "function_id"}
	values := map[string]string{Webhook: t.URL, NATS: t.Subject, Function: t.FunctionID}
	for _, of := range []string{Webhook, NATS, Function} {
		faults.Check(t.Type == of || values[of] == "", members[of], "is only for type %s", of)
	}
	switch t.Type {
	case Webhook:
		checkURL(faults, t.URL)
	case NATS:
		faults.Check(len(t.Subject) <= maxSubject && subject.MatchString(t.Subject), "subject",
			"must have 1…%d characters: tokens of letters, digits, _ and -, joined by dots", maxSubject)
	case Function:
		faults.Check(t.FunctionID != "" && len(t.FunctionID) <= 64, "function_id", "must be a function's id")
	default:
		faults.Add("type", "must be webhook, nats or function")
	}
	checkPayload(faults, "payload", t.Payload)
	t.checkSecret(faults, before.Secret)
}

func (t *Target) checkSecret(faults *apperr.Faults, before secret.Text) {
	given, fresh := t.Secret.Given()
	switch {
	case t.Secret.IsSet() && t.Type != Webhook:
		faults.Add("secret", "is only for type webhook")
	case fresh:
		faults.Check(webhook.ValidSecret(given), "secret", "must be %s", webhook.SecretForm)
	case t.Secret.IsSet() && !before.IsSet():
		faults.Add("secret", "has no value that could be kept")
	}
}

func checkPayload(faults *apperr.Faults, member string, payload jsontext.Value) {
	faults.Check(len(payload) <= maxPayload, member, "must have at most %d KiB", maxPayload>>10)
}

// reset begins the schedule anew, after it was set or resumed: it sets the state and the next time to fire.
func (j *Job) reset(now clock.Time) {
	j.ScheduledSince = now
	j.NextFireTime = 0
	switch next := j.Schedule.next(now, now); {
	case j.State == suspended || j.Status != enabled:
	case next.IsZero() && j.Schedule.Type == once:
		j.State = finished
	default:
		j.State, j.NextFireTime = scheduled, momentOf(next)
	}
}
