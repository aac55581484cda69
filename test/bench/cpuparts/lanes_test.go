package cpuparts

import (
	"strings"
	"testing"
)

// Ensure that a stack counts for the goroutine that it is of, and for watches wherever these are served.
func TestLaneOf(t *testing.T) {
	full := strings.NewReplacer("OURS/", ours)
	for _, row := range []struct {
		leafFirst string
		want      Lane
	}{
		{"OURS/consensus/raft.(*Replica).Step,OURS/member.(*Member).runLoop,OURS/member.(*lifecycle).run.func1", LoopLane},
		{"OURS/transport.(*Transport).Send,OURS/member.(*Member).runDisk,OURS/member.(*lifecycle).run.func1", DiskLane},
		{"OURS/kv/mvcc.(*Writer).Put,OURS/member.(*Member).runApply", ApplyLane},
		{"OURS/kv/watch.(*Hub).Publish,OURS/kv/apply.(*Machine).commit,OURS/member.(*Member).runApply", WatchLane},
		{"OURS/rpc.(*hotKV).servePut,OURS/rpc/front.(*Call).begin,OURS/h2.(*Server).read", ClientLane},
		{"OURS/member/lanes.(*Inbox).PutPaced,OURS/transport.(*reader).run,OURS/transport.(*Transport).serveMessages.func1", PeerLane},
		{"syscall.write,google.golang.org/grpc/internal/transport.(*loopyWriter).run", PeerLane},
		{"runtime.gcDrain,runtime.gcBgMarkWorker", OtherLanes},
	} {
		if got := laneOf(strings.Split(full.Replace(row.leafFirst), ",")); got != row.want {
			t.Errorf("%s: got lane %d, want %d", row.leafFirst, got, row.want)
		}
	}
}
