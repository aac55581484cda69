package doctor_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

const day = int64(24 * 3600_000)

// healthy is a cluster of n voters under some load, of which the first leads.
func healthy(n int) *quoratepb.Collected {
	const now = int64(1_800_000_000_000)
	c := &quoratepb.Collected{AtMs: now}
	config := &quoratepb.ObservedConfig{Index: 7, Settled: true, Level: 3, OwnLevel: 3}
	for id := range uint64(n) {
		name := fmt.Sprintf("m%d", id+1)
		config.Members = append(config.Members, &quoratepb.ObservedMember{Id: id + 1, Name: name, Voter: true, Started: true,
			Build: "1.0", Level: 3, PeerUrls: []string{"http://" + name + ":2380"}, ClientUrls: []string{"http://" + name + ":2379"}})
	}
	for i, known := range config.Members {
		o := &quoratepb.Observation{ClusterId: 9, MemberId: known.Id, Name: known.Name, Build: "1.0", NowMs: now + int64(i)*20,
			UpMs: 3600_000, WindowMs: 60_000, HistoryMs: 600_000, HeartbeatMs: 100, ElectionMs: 1000,
			Core: &quoratepb.ObservedCore{Leader: 1, Term: 4, Commit: 90_000, Applied: 90_000, LastIndex: 90_000, Committed: 6000,
				LeaderChanges: 1},
			Config: proto.CloneOf(config),
			Disk: &quoratepb.ObservedDisk{Syncs: 4000, SyncMeanUs: 2000, SyncP99Us: 9000, AvailableBytes: 50 << 30,
				ReserveBytes: 256 << 20},
			Store: &quoratepb.ObservedStore{Revision: 80_000, CompactRevision: 70_000, Keys: 5000, Versions: 12_000, SizeBytes: 10 << 20,
				QuotaBytes: 2 << 30, Pressure: 0.3, Applies: 3000, ApplyMeanUs: 200, ApplyP99Us: 2000},
			Work: &quoratepb.ObservedWork{Puts: 5800, PutBytes: 5800 * 200, MaxRequestBytes: 1536 << 10, Writes: 2000, WriteMeanUs: 4000,
				Leases: 900, LeaseBytes: 900 * 500, LeaseLimitBytes: 100 << 20, Granted: 60, Revoked: 50, Watchers: 700,
				WatchLimitBytes: 256 << 20, WatchHostBytes: 64 << 20, BusiestPercent: 70},
			Process: &quoratepb.ObservedProcess{MemoryLimitBytes: 4 << 30, MemoryBytes: 1 << 30, OpenFiles: 900, OpenFilesLimit: 65536,
				ProcessorUs: 72_000_000, Processors: 4,
				Parts: []*quoratepb.ObservedPart{{Name: "watches", Bytes: 1 << 20, LimitBytes: 256 << 20}}},
			Certificates: []*quoratepb.ObservedCertificate{{Port: "peer", What: "certificate", FromMs: now - 100*day, UntilMs: now + 265*day}},
			Security:     &quoratepb.ObservedSecurity{PeersEncrypted: true, PeersCertified: true, ClientsEncrypted: true, Users: true},
		}
		for _, other := range config.Members {
			if other.Id == known.Id {
				continue
			}
			peer := &quoratepb.ObservedPeer{Id: other.Id, Connected: true, ConnectedMs: 3600_000, RoundTripUs: 900, Received: 900, Sent: 900}
			if i == 0 {
				peer.Followed, peer.Active, peer.CaughtUp, peer.State = true, true, true, "replicate"
				peer.Match, peer.Gained = 89_999, 6000
			}
			o.Peers = append(o.Peers, peer)
		}
		c.Members = append(c.Members, &quoratepb.CollectedMember{Id: known.Id, Name: known.Name, Endpoint: known.Name + ":2379",
			AskedMs: now + int64(i)*20 + 3, RoundTripUs: 4000, Observation: o})
	}
	return c
}

// hospital makes clusters ill.
type hospital struct{ *quoratepb.Collected }

// of is what a member says, by its number from 1.
func (h hospital) of(n int) *quoratepb.Observation { return h.Members[n-1].Observation }

// peer is what a member knows of another one.
func (h hospital) peer(n, of int) *quoratepb.ObservedPeer {
	for _, p := range h.of(n).Peers {
		if p.Id == uint64(of) {
			return p
		}
	}
	return nil
}

// everywhere changes what all members say.
func (h hospital) everywhere(change func(o *quoratepb.Observation)) {
	for _, m := range h.Members {
		if m.Observation != nil {
			change(m.Observation)
		}
	}
}

// known changes a member in all configurations.
func (h hospital) known(n int, change func(m *quoratepb.ObservedMember)) {
	h.everywhere(func(o *quoratepb.Observation) { change(o.Config.Members[n-1]) })
}

// gone takes a member away, as the collector and the leader see it.
func (h hospital) gone(n int, fault string) {
	m := h.Members[n-1]
	m.Observation, m.Fault, m.FaultText = nil, fault, "connection refused"
	h.everywhere(func(o *quoratepb.Observation) {
		for _, p := range o.Peers {
			if p.Id == uint64(n) {
				p.Connected, p.Active, p.Received, p.Fault, p.Failures = false, false, 0, "unreachable", 30
				if p.Followed {
					p.SilentMs = 65_000
				}
			}
		}
	})
}

// unled lets no member know a leader.
func (h hospital) unled() {
	h.everywhere(func(o *quoratepb.Observation) {
		o.Core.Leader, o.Core.LeaderlessMs = 0, 20_000
		for _, p := range o.Peers {
			p.Followed = false
		}
	})
}

// cut breaks the link from one member to another one, in one direction.
func (h hospital) cut(from, to int, fault string) {
	p := h.peer(from, to)
	p.Connected, p.Fault, p.Failures, p.Received = false, fault, 40, 0
}

type fault struct {
	name     string
	voters   int // zero: three
	inject   func(h hospital)
	code     doctor.Code
	severity doctor.Severity
	words    string // of the first sentence
	folded   []doctor.Code
}

// Ensure that a healthy cluster of any size has nothing above advice, and one of three or five nothing at all.
func TestJudge_healthy(t *testing.T) {
	for n := 1; n <= 7; n++ {
		got := doctor.Judge(healthy(n))
		for _, f := range got {
			if n != 2 && f.Severity < doctor.Advice || n%2 == 1 && n > 1 {
				t.Errorf("%d voters: %v", n, f)
			}
		}
		alone := healthy(n)
		alone.Alone, alone.Members = true, alone.Members[:1]
		for _, f := range doctor.Judge(alone) {
			if n > 2 && n%2 == 1 {
				t.Errorf("the leader of %d, alone: %v", n, f)
			}
		}
	}
	if got := doctor.Judge(&quoratepb.Collected{}); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Ensure that each fault is found first, with its severity and its sentence, and that each code is.
func TestJudge_faults(t *testing.T) {
	seen := map[doctor.Code]bool{}
	for _, row := range slices.Concat(faultsOfMembers, faultsOfLinks, faultsOfMachines, faultsOfClients, faultsOfTheWhole, faultsOverLinks) {
		h := hospital{healthy(max(row.voters, 3))}
		if row.voters > 0 {
			h = hospital{healthy(row.voters)}
		}
		row.inject(h)
		got := doctor.Judge(h.Collected)
		seen[row.code] = true
		if len(got) == 0 || got[0].Code != row.code || got[0].Severity != row.severity || !strings.Contains(got[0].Sentence, row.words) {
			t.Errorf("%s: got %+v\nwant first %s of severity %d, with %q", row.name, got, row.code, row.severity, row.words)
			continue
		}
		if got[0].Because != "" || got[0].Cure == "" {
			t.Errorf("%s: %+v", row.name, got[0])
		}
		var folded []doctor.Code
		for _, f := range got[1:] {
			folded = append(folded, f.Code)
			if f.Because == "" {
				t.Errorf("%s: %s stands beside it: %s", row.name, f.Code, f.Sentence)
			}
		}
		if !slices.Equal(folded, row.folded) {
			t.Errorf("%s: behind it come %v, want %v", row.name, folded, row.folded)
		}
		if again := doctor.Judge(h.Collected); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Errorf("%s: two verdicts on one input:\n%v\n%v", row.name, got, again)
		}
	}
	for _, row := range doctor.Codes() {
		if !seen[row.Code] {
			t.Errorf("no fault has the code %s", row.Code)
		}
	}
}

// Ensure that of two faults at once both are found, and neither hides the other unless it explains it.
func TestJudge_twoFaults(t *testing.T) {
	h := hospital{healthy(5)}
	h.of(2).Disk.SyncP99Us, h.of(2).Disk.SyncMeanUs = 900_000, 300_000
	h.of(3).Disk.UnsafeNoSync = true
	h.of(1).Core.LeaderChanges = 20
	var got []string
	for _, f := range doctor.Judge(h.Collected) {
		got = append(got, fmt.Sprint(f.Severity, " ", f.Code, " ", f.Because))
	}
	want := []string{"next failure SYNC_OFF ", "impaired DISK_SLOW ", "impaired LEADER_CHANGES DISK_SLOW"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ensure that no cure of any finding empties, removes or recovers something.
func TestJudge_cures(t *testing.T) {
	for _, row := range slices.Concat(faultsOfMembers, faultsOfLinks, faultsOfMachines, faultsOfClients, faultsOfTheWhole, faultsOverLinks) {
		h := hospital{healthy(max(row.voters, 1))}
		if row.voters == 0 {
			h = hospital{healthy(3)}
		}
		row.inject(h)
		for _, f := range doctor.Judge(h.Collected) {
			for _, word := range []string{"recover", "--force", "member remove", "rm ", "--yes", "del "} {
				if strings.Contains(f.Cure, word) {
					t.Errorf("%s: the cure of %s is %q", row.name, f.Code, f.Cure)
				}
			}
			for _, word := range []string{" reset ", " replace ", " update ", "uncordon"} {
				if strings.Contains(f.Cure, word) && !strings.Contains(f.Cure, "--dry-run") {
					t.Errorf("%s: the cure of %s changes members at once: %q", row.name, f.Code, f.Cure)
				}
			}
		}
	}
}

// Ensure that a job is not stuck while its newcomer gets what it lacks, and that sentences count as people do.
func TestJudge_jobGoesOn(t *testing.T) {
	h := hospital{healthy(4)}
	h.known(4, func(m *quoratepb.ObservedMember) { m.Voter, m.Joining = false, true })
	h.of(1).Jobs = []*quoratepb.ObservedJob{{Id: 7, Kind: "replace", State: "running", Phase: "catch-up", QuietMs: 600_000, Turn: true}}
	h.peer(1, 4).CaughtUp, h.peer(1, 4).Match = false, 500
	if got := doctor.Judge(h.Collected); len(got) > 0 {
		t.Errorf("a newcomer that catches up: %v", got)
	}
	h.peer(1, 4).Gained, h.peer(1, 4).SnapshotTotalBytes = 0, 1<<30
	if got := doctor.Judge(h.Collected); len(got) > 0 {
		t.Errorf("a newcomer that is sent the state: %v", got)
	}
	h.peer(1, 4).CaughtUp, h.peer(1, 4).Gained, h.peer(1, 4).SnapshotTotalBytes = true, 6000, 0
	if got := doctor.Judge(h.Collected); len(got) != 1 || got[0].Code != doctor.JobStuck {
		t.Errorf("a newcomer that has all, and a job that does not go on: %v", got)
	}
}

// Ensure that a sentence about one thing does not speak of several.
func TestJudge_oneOfAll(t *testing.T) {
	plurals := regexp.MustCompile(`\b1 (connections|calls|lines|times|entries|attempts|voters|streams|leases|watchers|writes|keys|versions)\b`)
	h := hospital{healthy(5)}
	h.everywhere(func(o *quoratepb.Observation) {
		o.Work.ConnectionsRefused, o.Work.CallsRefused, o.Work.OverdrawnStreams, o.Work.Watchers, o.Work.WatchersBehind = 1, 1, 1, 1, 1
		o.Work.Leases, o.Work.LeaseBytes, o.Process.LogLinesDropped, o.Store.Stalls, o.Store.ReclaimFailures = 1, 1<<40, 1, 1, 1
	})
	h.cut(1, 2, "unreachable")
	h.peer(1, 2).Failures = 1
	found := doctor.Judge(h.Collected)
	for _, f := range found {
		if at := plurals.FindString(f.Sentence); at != "" {
			t.Errorf("%s says %q: %s", f.Code, at, f.Sentence)
		}
	}
	if len(found) < 6 {
		t.Errorf("found only %v", found)
	}
}

// Ensure that what a member applies again as it starts, or catches up, is not taken for what clients do now.
func TestJudge_replay(t *testing.T) {
	for _, row := range []struct {
		name          string
		up, committed int64
	}{{"one that has just started", 900, 53}, {"one that catches up", 3600_000, 400}} {
		h := hospital{healthy(3)}
		o := h.of(3)
		o.UpMs, o.WindowMs = row.up, min(row.up, 60_000)
		o.Work.Granted, o.Work.Leases, o.Core.Committed = 476, 0, uint64(row.committed)
		if row.up < o.WindowMs+1 {
			o.Work.PutBytes = o.Work.Puts * 300 << 10
		}
		if got := doctor.Judge(h.Collected); len(got) > 0 {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// Ensure that a member which stops, or starts, neither hangs nor applies late, and that one which goes on so does.
func TestJudge_restart(t *testing.T) {
	h := hospital{healthy(3)}
	h.of(3).Core.Applied, h.of(3).UpMs = 60_000, 2000
	if got := doctor.Judge(h.Collected); len(got) > 0 {
		t.Errorf("one that applies its log again: %v", got)
	}
	h.of(3).UpMs = 10_000
	if got := doctor.Judge(h.Collected); len(got) != 1 || got[0].Code != doctor.ApplyBehind {
		t.Errorf("one that still does: %v", got)
	}
	h = hospital{healthy(3)}
	h.peer(2, 3).RoundTripUs, h.peer(2, 3).ConnectedMs = 119_000, 900
	if got := doctor.Judge(h.Collected); len(got) > 0 {
		t.Errorf("one whose first round trip was slow: %v", got)
	}
	h.peer(2, 3).ConnectedMs = 10_000
	if got := doctor.Judge(h.Collected); len(got) != 1 || got[0].Code != doctor.LinkSlow {
		t.Errorf("one whose link is slow: %v", got)
	}
	h = hospital{healthy(3)}
	h.gone(3, doctor.FaultSilent)
	h.peer(1, 3).SilentMs = 260
	if got := doctor.Judge(h.Collected); len(got) > 0 {
		t.Errorf("one that is silent for less than an election timeout: %v", got)
	}
	h.peer(1, 3).SilentMs = 1001
	if got := doctor.Judge(h.Collected); len(got) == 0 || got[0].Code != doctor.MemberHangs {
		t.Errorf("one that is silent for longer: %v", got)
	}
}
