// Package function keeps the functions of tenants (their records, code, revisions and logs), calls them for clients and
// jobs, and runs them for the events that trigger them. Package sandbox runs their code.
package function

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// The values of status.
const (
	Enabled  = "1"
	Disabled = "0"
)

const (
	maxFunctions   = 200             // of a tenant
	maxName        = 128             // characters
	maxDescription = 1024            // characters
	maxSource      = 256 << 10       // bytes
	maxModule      = sandbox.MaxCode // bytes
	maxVariables   = 50
	maxValue       = 4 << 10 // bytes of a variable
	maxHosts       = 20
	maxTriggers    = 10
	maxEventTypes  = 20 // of a trigger

	MaxRevisions     = 10      // revisions of a function whose code is kept
	maxRevisionBytes = 8 << 20 // bytes of their code together
)

// Function is a function record. Its JSON form is the API's, the events' and the store's. Detail adds the code.
type Function struct {
	docstore.Meta
	Profile
	Revision  int64      `json:"revision" readOnly:"true" doc:"The current revision of the code; 0 while there is none" example:"1"`
	Revisions []Revision `json:"revisions" readOnly:"true" nullable:"false" doc:"Those whose code is kept, latest first"`
}

// Profile holds the members that clients set, except the code.
type Profile struct {
	Code         string                  `json:"code" doc:"1…64 lower-case letters, digits, _ or -; unique" example:"welcome"`
	Name         string                  `json:"name" doc:"1…128 characters" example:"Welcome mail"`
	Description  string                  `json:"description" doc:"Up to 1024 characters"`
	Runtime      sandbox.Runtime         `json:"runtime" enum:"javascript,wasm" doc:"What runs its code"`
	Entry        string                  `json:"entry" doc:"The function that is called; main if absent, _start for wasm" example:"main"`
	Env          map[string]*secret.Text `json:"env" doc:"Every value is shown as ******"`
	AllowedHosts []string                `json:"allowed_hosts" nullable:"false" doc:"The hosts that fetch may send requests to, at most 20: api.example.com, *.example.com, api.example.com:8443"`
	Limits       Limits                  `json:"limits" doc:"Of one call"`
	Triggers     []Trigger               `json:"triggers" nullable:"false" doc:"Events that it runs for; at most 10"`
	Status       string                  `json:"status" enum:"1,0" doc:"1: it can be called"`
}

// Limits are the limits of one call; 0 means the default.
type Limits struct {
	TimeoutMS int64 `json:"timeout_ms" doc:"The longest a call takes; waiting for fetch counts" example:"3000"`
	CPUMS     int64 `json:"cpu_ms" doc:"The most processor time of a call" example:"1000"`
	MemoryMB  int64 `json:"memory_mb" doc:"The most memory of a call, in MiB" example:"32"`
}

// Trigger names the events that the function is run for.
type Trigger struct {
	EventTypes []string `json:"event_types" nullable:"false" doc:"1…20 types such as user.created, or the patterns user.*, *.deleted and *" example:"user.created"`
}

// Revision describes the code of one revision.
type Revision struct {
	Revision    int64           `json:"revision" doc:"Counts the revisions from 1" example:"1"`
	Runtime     sandbox.Runtime `json:"runtime" enum:"javascript,wasm" doc:"What runs the code"`
	Entry       string          `json:"entry" doc:"The function that is called" example:"main"`
	Bytes       int64           `json:"bytes" doc:"Size of the code" example:"75"`
	SHA256      string          `json:"sha256" doc:"Of the code" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Actor       string          `json:"actor" doc:"Who created the revision" example:"admin"`
	TimeCreated clock.Time      `json:"time_created" doc:"When it was deployed" example:"2026-01-31T09:30:00.000Z"`
}

const (
	byCode         = "code"
	byName         = "name"
	byRuntime      = "runtime"
	byStatus       = "status"
	byEvent        = "event"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var functions = outbox.Define("function", "/functions", docstore.Schema[Function]{
	Name: "functions", Noun: "function",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Indexes: slices.Concat([]docstore.Index[Function]{
		docstore.Unique(docstore.ByText(byCode, func(f *Function) string { return f.Code }), "code"),
		docstore.ByText(byName, func(f *Function) string { return textindex.Key(f.Name) }),
		docstore.ByText(byRuntime, func(f *Function) string { return string(f.Runtime) }),
		docstore.ByText(byStatus, func(f *Function) string { return f.Status }),
		docstore.ByList(byEvent, (*Function).listensTo),
		docstore.ByNumber(byTimeCreated, func(f *Function) docstore.Value { return docstore.Moment(f.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(f *Function) docstore.Value { return docstore.Moment(f.TimeModified) }),
	}, textindex.KeywordIndexes(func(f *Function) []string { return []string{f.Name, f.Code} })),
	Sealed: func(f *Function) (members []docstore.Sealed) {
		// The code decides what it sends. Who may change the code may read the variables.
		route := docstore.Route{"allowed_hosts": slices.Sorted(slices.Values(f.AllowedHosts))}
		for name, value := range f.Env {
			members = append(members, docstore.Seal(envMember+name, value, route))
		}
		return members
	},
})

// envMember is the prefix of the names of sealed members.
const envMember = "env."

// listensTo returns the event types and patterns of the triggers, none if the function is disabled.
func (f *Function) listensTo() (all []string) {
	if f.Status != Enabled {
		return nil
	}
	for _, t := range f.Triggers {
		all = append(all, t.EventTypes...)
	}
	return all
}

var (
	codeForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	hostForm     = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$`)
	eventForm    = regexp.MustCompile(`^(\*|(\*|[a-z][a-z0-9_-]*)\.(\*|[a-z][a-z0-9_-]*))$`)
)

// complete sets absent members to their defaults.
func (p *Profile) complete() {
	if p.Env == nil {
		p.Env = map[string]*secret.Text{}
	}
	if p.AllowedHosts == nil {
		p.AllowedHosts = []string{}
	}
	if p.Triggers == nil {
		p.Triggers = []Trigger{}
	}
	if p.Runtime == "" {
		p.Runtime = sandbox.JavaScript
	}
	if p.Entry == "" {
		p.Entry = map[sandbox.Runtime]string{sandbox.JavaScript: "main", sandbox.WebAssembly: "_start"}[p.Runtime]
	}
	for i := range p.Triggers {
		if p.Triggers[i].EventTypes == nil {
			p.Triggers[i].EventTypes = []string{}
		}
	}
	for limit, absent := range map[*int64]int64{
		&p.Limits.TimeoutMS: 3000, &p.Limits.CPUMS: 1000, &p.Limits.MemoryMB: 32,
	} {
		if *limit == 0 {
			*limit = absent
		}
	}
}

// check reports every fault of a complete profile. before is the stored profile, nil for a new function.
func (p *Profile) check(faults *apperr.Faults, before *Profile) {
	faults.Check(codeForm.MatchString(p.Code), "code",
		"must have 1…64 lower-case letters, digits, _ or -, and begin with a letter or digit")
	faults.Name("name", p.Name, maxName)
	faults.Prose("description", p.Description, maxDescription)
	faults.Check(p.Runtime == sandbox.JavaScript || p.Runtime == sandbox.WebAssembly, "runtime",
		"must be javascript or wasm")
	faults.Check(len(p.Entry) <= 64, "entry", "must have at most 64 characters")
	faults.Switch("status", &p.Status, Enabled)
	within := func(name string, value, least, most int64) {
		faults.Check(value >= least && value <= most, "limits."+name, "must lie in %d…%d", least, most)
	}
	within("timeout_ms", p.Limits.TimeoutMS, 10, maxTimeout.Milliseconds())
	within("cpu_ms", p.Limits.CPUMS, 10, maxCPU.Milliseconds())
	within("memory_mb", p.Limits.MemoryMB, 4, sandbox.MaxMemory>>20)
	p.checkEnv(faults, before)
	faults.Check(len(p.AllowedHosts) <= maxHosts, "allowed_hosts", "must have at most %d hosts", maxHosts)
	for i, host := range p.AllowedHosts {
		faults.Check(hostForm.MatchString(host) && len(host) <= 253, apperr.Item("allowed_hosts", i),
			"must be a host such as api.example.com, *.example.com or api.example.com:8443")
	}
	faults.Check(len(p.Triggers) <= maxTriggers, "triggers", "must have at most %d triggers", maxTriggers)
	for i, trigger := range p.Triggers {
		at := typesOf(i)
		faults.Check(len(trigger.EventTypes) >= 1 && len(trigger.EventTypes) <= maxEventTypes, at,
			"must have 1…%d event types", maxEventTypes)
		for j, event := range trigger.EventTypes {
			faults.Check(eventForm.MatchString(event) && len(event) <= 128, fmt.Sprintf("%s[%d]", at, j),
				"must be an event type such as user.created, or a pattern: user.*, *.deleted or *")
		}
	}
}

const (
	maxTimeout = 25 * time.Second
	maxCPU     = 10 * time.Second
)

func (p *Profile) checkEnv(faults *apperr.Faults, before *Profile) {
	faults.Check(len(p.Env) <= maxVariables, "env", "must have at most %d variables", maxVariables)
	for name, value := range p.Env {
		at := "env." + name
		if !variableForm.MatchString(name) {
			faults.Add("env", "must have names of 1…64 letters, digits and _, which begin with a letter or _")
			continue
		}
		if value == nil {
			faults.Add(at, "must be a string")
			continue
		}
		given, fresh := value.Given()
		faults.Check(len(given) <= maxValue, at, "must have at most %d bytes", maxValue)
		faults.Check(!strings.ContainsRune(given, 0), at, "must not contain the character U+0000")
		masked := value.IsSet() && !fresh
		faults.Check(!masked || before != nil && before.Env[name] != nil, at, "has no value that could be kept")
	}
}

// limits returns the limits in the sandbox's units.
func (p *Profile) limits() sandbox.Limits {
	return sandbox.Limits{
		Timeout: time.Duration(p.Limits.TimeoutMS) * time.Millisecond,
		CPU:     time.Duration(p.Limits.CPUMS) * time.Millisecond,
		Memory:  p.Limits.MemoryMB << 20,
	}
}
