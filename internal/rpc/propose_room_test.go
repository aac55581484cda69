package rpc_test

import (
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
)

// TestServices_Propose_diskReserve keeps the reserve of the disk from a client that marks every proposal as repeated, answers
// those that were executed, and takes new ones once there is room.
func TestServices_Propose_diskReserve(t *testing.T) {
	var low atomic.Bool
	s := serveNative(t, func(o *rpcOptions) { o.LowDisk = sayLow(&low) })
	c := openPropose(t, s, 0xc1)
	session := c.open()
	c.propose(session, 1, put("k"), false)
	low.Store(true)
	for _, tc := range []struct {
		sequence uint64
		again    bool
		want     quoratepb.Answer_Verdict
		code     codes.Code
	}{
		{2, false, quoratepb.Answer_VERDICT_REFUSED, codes.ResourceExhausted},
		{2, true, quoratepb.Answer_VERDICT_AGAIN, codes.ResourceExhausted},
		{1, true, quoratepb.Answer_VERDICT_APPLIED, codes.OK},
	} {
		a := c.propose(session, tc.sequence, put("k"), tc.again)
		if a.Verdict != tc.want || codes.Code(a.Code) != tc.code {
			t.Errorf("sequence %d, again %v: got %v, want %v", tc.sequence, tc.again, a, tc.want)
		}
	}
	low.Store(false)
	if a := c.propose(session, 2, put("k"), true); a.Verdict != quoratepb.Answer_VERDICT_APPLIED || a.Code != 0 {
		t.Errorf("with room: got %v", a)
	}
}
