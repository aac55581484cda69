package process_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/test/history"
)

// checkFailures allows only errors after which an operation may have happened or can be given again: no member was there, or
// the time was up.
func checkFailures(t *testing.T, r *history.Recorder) {
	t.Helper()
	for _, err := range r.Failures() {
		code := status.Code(err)
		var told rpctypes.EtcdError
		if errors.As(err, &told) {
			code = told.Code()
		}
		if code != codes.Unavailable && code != codes.DeadlineExceeded {
			t.Errorf("an operation failed with %v (%v)", err, code)
		}
	}
}

// TestProtocols adds two members and removes one, by every protocol, while clients write. All of it is one job, and one step but for
// the protocol that changes one voter at a time: there it is three.
func TestProtocols(t *testing.T) {
	t.Parallel()
	for i, protocol := range []string{"auto", "single", "joint", "joint-early", "activate", "apply"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			e := startTrio(t)
			old := e.leader()
			if i%2 == 1 {
				old = e.others(old)[0]
			}
			stop := e.witness(3, e.others(old)...) // a client that is connected to a member that stops sees it stop
			newcomers := []*node{e.node("m4"), e.node("m5")}
			var adds []string
			for _, n := range newcomers {
				adds = append(adds, fmt.Sprintf("--add=%s=http://%s", n.name, n.peer))
			}
			change := func(words ...string) []string {
				return e.member(append([]string{"change", "--yes", "--protocol=" + protocol}, words...)...)
			}
			whole := append(slices.Clone(adds), "--remove="+old.name)
			if protocol == "single" {
				e.quorate(0, append(change(whole...), "--dry-run"), "make m4 a voter in one step", "make m5 a voter in one step",
					"remove "+old.name+" in one step")
			}
			command := e.begin(change(whole...)...)
			e.job("running", "start")
			for _, n := range newcomers {
				e.enter(n, e.others(old)...)
			}
			e.finish(command, 0, "done in ")
			e.leave(old)
			e.waitRemoved(old)
			e.checkVoters()
			want := protocol
			if protocol == "auto" {
				want = "joint-early"
			}
			cluster := e.described()
			if cluster.Protocol != want || !cluster.Settled || cluster.Joint || cluster.Strength.Voters != 4 {
				t.Errorf("afterwards: %v; want four voters, by %s, settled", cluster, want)
			}
			e.awaitWrites(50) // by those that are left
			record := stop()
			checkFailures(t, record)
			for _, n := range e.nodes {
				e.waitReady(n)
			}
		})
	}
}
