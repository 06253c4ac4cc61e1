package method

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/questions/claimmapping"
)

//go:embed policies/*.json
var policyFiles embed.FS

// PolicySchema is the JSON Schema of the policies of one type of method.
type PolicySchema struct {
	Type         string          `json:"type" enum:"password,sms,mail,otp,webauthn,social,enterprise" doc:"The type of method"`
	PolicySchema json.RawMessage `json:"policy_schema" doc:"JSON Schema (2020-12) of policy"`

	compiled *schema.Schema
}

// PolicySchemas returns the schemas of all types, in the order of Types. It panics if a file is faulty; a test shows
// that none is.
var PolicySchemas = sync.OnceValue(func() []PolicySchema {
	all := make([]PolicySchema, len(Types))
	for i, kind := range Types {
		text, err := policyFiles.ReadFile("policies/" + kind + ".json")
		if err != nil {
			panic(err)
		}
		all[i].Type = kind
		if all[i].compiled, err = schema.Compile(text); err != nil {
			panic(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			panic(err)
		}
		all[i].PolicySchema = compact.Bytes()
	}
	return all
})

// checkPolicy reports every fault of the policy.
func (p *Profile) checkPolicy(faults *apperr.Faults) {
	faults.Props("policy", &p.Policy)
	if i := slices.Index(Types, p.Type); i >= 0 && bytes.HasPrefix(bytes.TrimSpace(p.Policy), []byte("{")) {
		PolicySchemas()[i].compiled.Check(faults.Within("policy"), p.Policy)
	}
	faults.Check(len(p.Policy) <= maxPolicy, "policy", "must have at most %d KiB", maxPolicy>>10)
	for member, source := range p.federated().ClaimMapping {
		at := "policy.claim_mapping." + member
		faults.Check(claimmapping.Sets(member), at, "is no member that can be set")
		if err := claimmapping.Check(source); err != nil {
			faults.Add(at, "%s", err)
		}
	}
}

// federated is what this service itself reads of the policy of a method of type social or enterprise.
func (p *Profile) federated() (policy struct {
	NodeID       string               `json:"node_id"`
	ClaimMapping claimmapping.Mapping `json:"claim_mapping"`
},
) {
	if p.Type == social || p.Type == enterprise {
		_ = json.Unmarshal(p.Policy, &policy) // the schema says what is wrong
	}
	return policy
}

// checkNode makes sure that a node takes members. The error is apperr.InvalidParameters at the policy, or Unavailable.
func checkNode(ctx context.Context, b *bus.Bus, node string) error {
	_, err := questions.ChangeMembers.Ask(ctx, b, questions.MembersChange{
		ID: "method", NodeID: node, DryRun: true, Unmanaged: true,
	})
	switch apperr.KindOf(err) {
	case apperr.NotFound:
		return apperr.Invalid("policy.node_id", "there is no such node")
	case apperr.InvalidState, apperr.ManagedElsewhere:
		return apperr.Invalid("policy.node_id", "takes no members: the node is dynamic, or another system manages it")
	}
	return err
}
