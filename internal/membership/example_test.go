package membership_test

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

func strength(s membership.Strength) string {
	if s.Outgoing > 0 {
		return fmt.Sprintf("%d+%d voters, stands %d", s.Outgoing, s.Voters, s.Tolerates)
	}
	return fmt.Sprintf("%d voters, stands %d", s.Voters, s.Tolerates)
}

// A leader is replaced, and another member is down: the plan tells the price before anything is done.
func ExampleDraft() {
	view := membership.View{
		Leader: 1, ID: consensus.ConfigID{Index: 12, Term: 3}, Settled: true, TermStarted: true, Strict: true, Last: 900,
	}
	for id := consensus.MemberID(1); id <= 5; id++ {
		name := fmt.Sprintf("m%d", id)
		urls := []string{fmt.Sprintf("http://10.0.%d.1:2380", id)}
		view.Config.Voters = append(view.Config.Voters, id)
		view.Config.Members = append(view.Config.Members, consensus.Member{ID: id, Name: name, PeerURLs: urls})
		view.Members = append(view.Members, membership.MemberView{
			ID: id, Name: name, Started: true, Active: id != 5, CaughtUp: id != 5, SilentMS: 12_000,
			ClientURLs: []string{fmt.Sprintf("http://10.0.%d.1:2379", id)},
		})
	}
	spec := membership.Spec{
		Kind: membership.KindReplace, Remove: []consensus.MemberID{1},
		Add: []membership.Newcomer{{Name: "m6", PeerURLs: []string{"http://m6:1"}}},
	}
	plan := membership.Draft(&spec, &view)
	fmt.Println("now:", strength(plan.Now))
	for i, step := range plan.Steps {
		fmt.Printf("%d. %s\n   %s, then %s\n", i+1, step.Title, strength(step.During), strength(step.After))
	}
	for _, warning := range plan.Warnings {
		command, flags, _ := strings.Cut(warning, ", with")
		fmt.Println("!", command)
		if flags != "" {
			fmt.Println("  with" + flags)
		}
	}
	// Output:
	// now: 5 voters, stands 1
	// 1. add m6 (http://m6:1) as a learner
	//    5 voters, stands 1, then 5 voters, stands 1
	// 2. stream the state to m6, then the log
	//    5 voters, stands 1, then 5 voters, stands 1
	// 3. hand leadership from m1 to m2, m3 or m4, whichever has most of the log
	//    5 voters, stands 1, then 5 voters, stands 1
	// 4. swap m1 for m6 in one joint step
	//    5+5 voters, stands 1, then 5 voters, stands 1
	// 5. settle: m1 may be switched off
	//    5 voters, stands 1, then 5 voters, stands 1
	// ! somebody must start m6: `quorate --name m6 --join http://10.0.1.1:2380 --listen-peer-urls http://0.0.0.0:1 --initial-advertise-peer-urls http://m6:1`
	//   with your flags for data, clients and TLS
	// ! m5 stays a voter and has not answered for 12 s
}
