package organization_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

const (
	teamSize      = 500
	divisions     = 10
	alsoInAnother = 10 // every tenth member of a team is in another, too
)

// BenchmarkBelow compares lists of a tree of 5,000 memberships with those of one of 200,000, in teams of 500.
func BenchmarkBelow(b *testing.B) {
	few, many := populateTeams(b, 5_000), populateTeams(b, 200_000)
	users := func(more string) operation {
		return func(p *population, r *rand.Rand) ask {
			return get("/v1/tree-nodes/" + p.ids[0] + "/users?recursive=true" + more)
		}
	}
	tokens := map[*population]string{}
	for _, p := range []*population{few, many} {
		path := "/v1/tree-nodes/" + p.ids[0] + "/users?recursive=true"
		tokens[p], _ = p.client.Get(path).Object()["next_page_token"].(string)
	}
	for _, c := range []struct {
		name string
		do   operation
	}{
		{"users of the root and below", users("")},
		{"users of the root and below, without total", users("&count=false")},
		{"users of the root and below, of 200", users("&page_size=200")},
		{"users of the root and below, with a role", users("&role=leader")},
		{"users of the root and below, second page", func(p *population, r *rand.Rand) ask {
			return users("&page_token="+tokens[p])(p, r)
		}},
		{"users of a division and below", func(p *population, r *rand.Rand) ask {
			return get("/v1/tree-nodes/" + p.ids[1+r.IntN(divisions)] + "/users?recursive=true")
		}},
		{"nodes by a part of the name that one has", func(p *population, r *rand.Rand) ask {
			return get("/v1/tree-nodes?object_code=company&name=" + url.QueryEscape(fmt.Sprintf("team %03d",
				r.IntN(len(p.ids)-1-divisions))))
		}},
		{"nodes by a part of the name that all have", func(*population, *rand.Rand) ask {
			return get("/v1/tree-nodes?object_code=company&name=team")
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			compareSizes(b, []*population{few, many}, c.do)
		})
	}
}

// compareSizes takes samples of populations in turn, so that changes in the machine's load affect all.
func compareSizes(b *testing.B, sizes []*population, do operation) {
	const block, during = 10, 3 * time.Second
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	took := make([][]time.Duration, len(sizes))
	for begun := time.Now(); time.Since(begun) < during; {
		for i, p := range sizes {
			for range block {
				asked := do(p, r)
				before := time.Now()
				asked(p.client).OK(nil)
				took[i] = append(took[i], time.Since(before))
			}
		}
	}
	p95 := make([]float64, len(sizes))
	for i, name := range []string{"few", "many"} {
		all := took[i][block:] // the first samples ran with cold caches
		slices.Sort(all)
		p95[i] = all[len(all)*95/100].Seconds() * 1000
		b.ReportMetric(all[len(all)/2].Seconds()*1000, "p50-ms-"+name)
		b.ReportMetric(p95[i], "p95-ms-"+name)
	}
	b.ReportMetric(p95[1]/p95[0], "p95-ratio")
	b.ReportMetric(0, "ns/op")
}

// populateTeams fills a file with a tree of teams, below ten divisions, and starts the service on it.
func populateTeams(b *testing.B, memberships int) *population {
	b.Helper()
	p := &population{b: b, ctx: asBench()}
	p.open(fmt.Sprintf("teams-%d.db", memberships), func() {
		p.ids = []string{p.addTree("company")}
		units := make([]tree.Draft, divisions)
		for i := range units {
			units[i].Name = fmt.Sprint("division ", i)
		}
		p.ids = append(p.ids, p.addBatch("company", units)...)
		teams := make([]tree.Draft, memberships/teamSize)
		for i := range teams {
			teams[i].Name, teams[i].ParentID = fmt.Sprintf("team %03d", i), p.ids[1+i%divisions]
		}
		p.ids = append(p.ids, p.addBatch("company", teams)...)
		for team, node := range p.ids[1+divisions:] {
			people := make([]member.Draft, teamSize)
			for i := range people {
				person := team*teamSize + i
				if i%alsoInAnother == 1 {
					person = (team+1)%len(teams)*teamSize + i - 1
				}
				people[i] = member.Draft{NodeID: node, UserID: user(person)}
				if i%50 == 0 {
					people[i].Role = "leader"
				}
			}
			_, err := p.members.AddMany(p.ctx, people)
			require.NoError(b, err)
		}
	})
	return p
}
