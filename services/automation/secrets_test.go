package automation_test

import (
	"net/http"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// secrets describes the sealed members to testkit.Conventions.
var secrets = map[string]testkit.Secret{
	"jobs": {
		Make: func(c *testkit.Client) string {
			return jobsPath + "/" + c.Post(jobsPath, object{
				"code": "secret", "name": "Secret", "schedule": object{"type": "cron", "cron": "0 3 1 1 *"},
				"target": object{"type": "webhook", "url": "https://jobs.acme.test/run",
					"secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
			}).ID()
		},
		Reroutes: []testkit.Reroute{{
			Method: http.MethodPatch, Body: object{"target": object{"url": "https://evil.test/run"}},
			Locations: []string{"body.target.secret"},
		}},
	},
	"functions": {
		Make: func(c *testkit.Client) string {
			return oneFunction(c.Post(functionsPath, javascript(`function main() {}`, object{
				"code": "secret", "env": object{"KEY": "sesame"}, "allowed_hosts": []any{"api.acme.test"},
			})).Object())
		},
		Reroutes: []testkit.Reroute{{
			Method: http.MethodPatch, Body: object{"allowed_hosts": []any{"api.acme.test", "evil.test"}},
			Locations: []string{"body.env.KEY"},
		}},
	},
}
