package method

import (
	"bytes"
	"embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/schema"
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
}
