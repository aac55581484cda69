package member

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// configOf is a configuration whose members have names and URLs of given lengths.
func configOf(members, name, urls, former, url int) (c consensus.Config) {
	at := func(id, n int) string {
		text := fmt.Sprintf("https://%d-%d.", id, n)
		return text + strings.Repeat("x", max(0, url-len(text)-5)) + ":2380"
	}
	for i := range members {
		m := consensus.Member{ID: math.MaxUint64 - consensus.MemberID(members-i), Name: strings.Repeat("n", name),
			Storage: consensus.StorageID{0: 0xff, 15: 0xff}}
		for n := range urls {
			m.PeerURLs = append(m.PeerURLs, at(i, n))
		}
		for n := range former {
			m.FormerURLs = append(m.FormerURLs, at(i, urls+n))
		}
		c.Members, c.Voters = append(c.Members, m), append(c.Voters, m.ID)
	}
	return c
}

// viewOf is a leader's view of a configuration, after as many members were removed.
func viewOf(c *consensus.Config, removed int) (view membership.View) {
	view.Config, view.Tombstones = *c, make([]consensus.MemberID, removed)
	for i := range view.Tombstones {
		view.Tombstones[i] = math.MaxUint64
	}
	for i := range c.Members {
		m := &c.Members[i]
		view.Members = append(view.Members, membership.MemberView{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs,
			ClientURLs: m.PeerURLs, Version: "3.7.1", Build: strings.Repeat("b", 64), Zone: strings.Repeat("z", 64),
			State: membership.OtherHistory, Match: math.MaxUint64})
	}
	return view
}

// fits fails if an answer is larger than its method allows.
func fits[Q, A any](t *testing.T, m *peercall.Method[Q, A], answer A) {
	t.Helper()
	body, err := m.Answer.Append([]byte{0}, answer)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%s: %d of %d bytes", m.Name, len(body), m.MostAnswer); len(body) > m.MostAnswer {
		t.Errorf("%s: an honest answer has %d bytes, and %d are read", m.Name, len(body), m.MostAnswer)
	}
}

// Ensure that the bounds of answers leave room for large clusters, and for members with the longest names and URLs.
func TestMostAnswer(t *testing.T) {
	const longestName, mostURLs, longestURL = 255, membership.MaxURLs, 512
	many := configOf(1000, 32, 1, 0, 64)
	long := configOf(32, longestName, mostURLs, membership.MaxFormer, longestURL)
	few := configOf(16, longestName, mostURLs, membership.MaxFormer, longestURL)
	for _, c := range []*consensus.Config{&many, &long} {
		fits(t, &methodDescribe, Description{Members: autopilot.WithoutStorage(c.Members), Published: c.Voters, Bound: c.Voters})
		fits(t, &methodJoin, autopilot.JoinAnswer{Members: c.Members})
		fits(t, &methodJoinStep, autopilot.JoinStep{JoinAnswer: autopilot.JoinAnswer{Members: c.Members}})
		fits(t, &methodView, clusterAnswer{View: viewOf(c, 10_000)})
	}
	for _, c := range []*consensus.Config{&many, &few} {
		fits(t, &methodAddresses, autopilot.NewWhereabouts(&identity.Claim{}, c, consensus.ConfigID{}))
	}
	renewals := make([]lease.Renewal, expiry.MaxBatchLeases)
	for i := range renewals {
		renewals[i] = lease.Renewal{TTLSeconds: -1}
	}
	fits(t, &methodRenew, renewals)
	fits(t, &methodTTL, leaseTTL{-1, -1})
	fits(t, &methodHeard, peercall.Nothing{})
	fits(t, &methodMoved, peercall.Nothing{})
	fits(t, &methodMovedStep, peercall.Nothing{})
	fits(t, integrityMethod("x"), integrity.Answer{Known: true, Base: math.MaxUint64, At: math.MaxUint64, Sum: math.MaxUint64})
	job := membership.Job{Message: strings.Repeat("m", kv.MaxJobBytes)}
	fits(t, &methodStart, job)
	fits(t, &methodCancel, job)
	plan := membership.Plan{Steps: make([]membership.PlanStep, 64)}
	for range 64 {
		plan.Blockers, plan.Warnings = append(plan.Blockers, strings.Repeat("b", 4<<10)), append(plan.Warnings, strings.Repeat("w", 4<<10))
	}
	fits(t, &methodPlan, plan)

	greeting := identity.Greeting{Claim: identity.Claim{Address: strings.Repeat("a", longestURL)}, Stage: identity.Founded,
		Elsewhere: strings.Join(long.Members[0].PeerURLs, ",")}
	for i := range many.Members {
		greeting.Bindings = append(greeting.Bindings, identity.Bound{Member: many.Members[i].ID, Storage: many.Members[i].Storage})
	}
	body, err := json.Marshal(greeting)
	if err != nil || len(body) > MostGreeting {
		t.Errorf("a greeting has %d bytes, and %d are read: %v", len(body), MostGreeting, err)
	}
}
