package doctor_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that findings of one code are one only if they say the same and have one cure, and that none is lost.
func TestJudge_sameCode(t *testing.T) {
	for _, row := range []struct {
		name   string
		inject func(h hospital)
		want   []string // a part of each finding of the code, with its cure behind a bar
		code   doctor.Code
	}{
		{"two processes at one member", func(h hospital) {
			h.of(2).Troubles = []string{"a process of epoch 3 runs", "a process of epoch 4 runs", "a process of epoch 3 runs"}
		}, []string{"epoch 3 runs|", "epoch 4 runs|"}, doctor.ForeignProcess},
		{"two certificates of one member", func(h hospital) {
			now := h.of(2).NowMs
			h.of(2).Certificates = []*quoratepb.ObservedCertificate{{Port: "peer", What: "certificate", FromMs: 1,
				UntilMs: now - day},
				{Port: "client", What: "client-certificate", FromMs: 1, UntilMs: now - day}}
		}, []string{"the certificate of m2 for peers expired|", "the client certificate of m2 for clients expired|"},
			doctor.CertExpired},
		{"two causes", func(h hospital) {
			h.peer(1, 2).State, h.peer(1, 3).State = "rolled back", "lost its disk"
		}, []string{"m2 has older data than it had, |reset m2", "m3 has lost its data, |reset m3"}, doctor.DiskLost},
		{"one cause, two cures", func(h hospital) {
			h.peer(1, 2).State, h.peer(1, 3).State = "lost its disk", "lost its disk"
		}, []string{"m2 has lost its data, |reset m2", "m3 has lost its data, |reset m3"}, doctor.DiskLost},
		{"one thing of all", func(h hospital) {
			h.everywhere(func(o *quoratepb.Observation) { o.Disk.UnsafeNoSync = true })
		}, []string{"m1 does not sync its log (--unsafe-no-fsync): a power failure loses what it acknowledged; the same of " +
			"m2, m3|"},
			doctor.NoSync},
		{"another measure", func(h hospital) {
			h.of(1).Process.LogLinesDropped, h.of(2).Process.LogLinesDropped = 7, 9
		}, []string{"m1 dropped 7|", "m2 dropped 9|"}, doctor.LogLinesDropped},
		{"all links", func(h hospital) {
			for a := 1; a <= 3; a++ {
				for b := 4; b <= 5; b++ {
					h.cut(a, b, "unreachable")
				}
			}
			h.cut(4, 1, "unreachable")
			h.cut(5, 1, "unreachable")
		}, []string{"m1 and m4 have no connection (unreachable, 40 attempts of the window failed), while others reach both; " +
			"see " +
			"the network between the two; the same of m1 and m5|"}, doctor.LinkDown},
	} {
		h := hospital{healthy(5)}
		row.inject(h)
		var got []doctor.Finding
		for _, f := range doctor.Judge(h.Collected) {
			if f.Code == row.code {
				got = append(got, f)
			}
		}
		if len(got) != len(row.want) {
			t.Errorf("%s: got %+v", row.name, got)
			continue
		}
		for i, want := range row.want {
			sentence, cure, _ := strings.Cut(want, "|")
			if !strings.Contains(got[i].Sentence, sentence) || !strings.Contains(got[i].Cure, cure) {
				t.Errorf("%s: got %+v, want %q", row.name, got[i], want)
			}
		}
	}
}
