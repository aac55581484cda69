package lab

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// taped are runs with all kinds of faults, dropped rules and protocols.
func taped(t *testing.T) []Options {
	t.Helper()
	var all []Options
	for _, name := range ProtocolNames() {
		for _, trouble := range []string{"", "leader-crash@1", "leader-restart@2+40ms", "partition@0:1,2|3,4,5", "lag:2", "drop-config-to:3"} {
			o := Options{From: 3, To: 5, Seed: 4, Record: true}
			o.SetProtocol(name)
			if trouble != "" {
				f, err := ParseFault(trouble)
				if err != nil {
					t.Fatal(err)
				}
				o.Faults = []Fault{f}
			}
			all = append(all, o)
		}
	}
	for _, b := range Breaks() {
		o := Options{From: 3, Add: 2, Remove: []memberID{1, 2}, Breaks: []string{b.Name}, Record: true}
		o.Protocol, _ = consensus.ParseProtocol("joint")
		all = append(all, o)
	}
	return append(all, Options{From: 5, Add: 1, Fast: true, Record: true})
}

// everyTape calls look with each story and run that is recorded, and with its chart.
func everyTape(t *testing.T, look func(name string, r *Report)) {
	t.Helper()
	for _, s := range Stories() {
		for _, safe := range []bool{true, false} {
			r, err := s.Record(safe)
			if err != nil {
				t.Fatal(err)
			}
			look(r.Title+" "+r.About[0], r)
		}
	}
	for _, o := range taped(t) {
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		look(r.Title, r)
	}
}

// Ensure that recording changes nothing: charts with every line are the same.
func TestTape_unseen(t *testing.T) {
	text := func(r *Report) string {
		var b strings.Builder
		if err := r.Chart(&b, true); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, s := range Stories() {
		for _, safe := range []bool{true, false} {
			plain, err := s.Play(safe)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := s.Record(safe)
			if err != nil {
				t.Fatal(err)
			}
			if plain.Tape != nil || recorded.Tape == nil || text(plain) != text(recorded) {
				t.Errorf("%s, safe %v: the recorded run is another one", s.Name, safe)
			}
		}
	}
	for _, o := range taped(t) {
		recorded, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		o.Record = false
		if plain, err := Run(o); err != nil || text(plain) != text(recorded) {
			t.Errorf("%s: the recorded run is another one (%v)", recorded.Title, err)
		}
	}
}

// Ensure that frames are in order, that the first has all members, that none repeats what the one before said, and that each line of
// the chart has a frame that is not later than the line.
func TestTape_frames(t *testing.T) {
	everyTape(t, func(name string, r *Report) {
		frames := r.Tape.Frames
		if len(frames) == 0 || len(frames[0].Changed) != r.Members || r.Tape.LeftOut > 0 && len(frames) < maxFrames {
			t.Fatalf("%s: %d frames, %d left out", name, len(frames), r.Tape.LeftOut)
		}
		last := map[memberID]MemberState{}
		for i, f := range frames {
			if i > 0 && f.At < frames[i-1].At {
				t.Errorf("%s: frame %d goes back in time", name, i)
			}
			for _, state := range f.Changed {
				if before, known := last[state.ID]; known && reflect.DeepEqual(before, state) {
					t.Errorf("%s: frame %d repeats member %v", name, i, state.ID)
				}
				last[state.ID] = state
			}
		}
		for _, line := range r.Lines() {
			if line.Text == "" || line.Kind == "" {
				t.Errorf("%s: an empty line at %v", name, time.Duration(line.At))
			}
			if at := frames[line.Frame].At; at > line.At || line.Kind != "pause" && at != line.At && r.Tape.LeftOut == 0 {
				t.Errorf("%s: %q is at %d, its frame %d at %d", name, line.Text, line.At, line.Frame, at)
			}
		}
		for i, f := range r.Tape.Flights {
			if f.Kind == "" || f.What == "" || !f.Lost && f.Arrived > 0 && f.Arrived < f.Sent {
				t.Errorf("%s: flight %d: %+v", name, i, f)
			}
		}
	})
}

// Ensure that quorums are shown as the core counts them: once all sets of a count have as many as they need, the leader has
// committed, and the candidate has ended its campaign, whatever rule is dropped.
func TestTape_counts(t *testing.T) {
	commits, elections, won, offers, refusals, joint := 0, 0, 0, 0, 0, 0
	everyTape(t, func(name string, r *Report) {
		for i, f := range r.Tape.Frames {
			for _, state := range f.Changed {
				for _, c := range state.Counts {
					switch c.About {
					case "commit":
						commits++
					case "votes":
						elections++
					case "fast":
						offers++
					}
					if len(c.Sets) == 2 {
						joint++
					}
					for _, s := range c.Sets {
						refusals += len(s.Refused)
						for _, id := range s.Have {
							if !slices.Contains(s.Members, id) {
								t.Errorf("%s: frame %d: %v counts, and is none of %v", name, i, id, s.Members)
							}
						}
					}
					if c.About == "elected" {
						won++
						if !c.complete() {
							t.Errorf("%s: frame %d: %v was elected without a quorum: %+v", name, i, state.ID, c.Sets)
						}
						continue
					}
					if c.About != "fast" && c.complete() {
						t.Errorf("%s: frame %d: %v counts %s, which is complete: %+v", name, i, state.ID, c.Text, c.Sets)
					}
				}
			}
		}
	})
	if commits == 0 || elections == 0 || won == 0 || offers == 0 || refusals == 0 || joint == 0 {
		t.Errorf("seen: %d commits, %d elections, %d won, %d offers, %d refusals, %d counts of two sets", commits, elections, won,
			offers, refusals, joint)
	}
}

// Ensure that nothing commits without its quorum in the frame: with all rules the frame before a leader's commit rises shows how many
// were missing, and one acknowledgement, or one sync, cannot be more than one member in each set.
func TestTape_countsBeforeCommit(t *testing.T) {
	seen := 0
	everyTape(t, func(name string, r *Report) {
		last := map[memberID]MemberState{}
		for i, f := range r.Tape.Frames {
			for _, state := range f.Changed {
				before := last[state.ID]
				last[state.ID] = state
				if before.Role != raft.Leader.String() || state.Role != before.Role || state.Term != before.Term || state.Commit == before.Commit {
					continue
				}
				for _, c := range before.Counts {
					if c.About != "commit" {
						continue
					}
					seen++
					for _, s := range c.Sets {
						if s.Need-len(s.Have) > 1 {
							t.Errorf("%s: frame %d: %v commits, and before it %d of %d were missing for %s", name, i, state.ID,
								s.Need-len(s.Have), s.Need, c.Text)
						}
					}
				}
			}
		}
	})
	if seen == 0 {
		t.Error("no commit was seen")
	}
}

// Ensure that a long run leaves a bounded tape, and says that something is left out.
func TestTape_bounded(t *testing.T) {
	o := Options{From: 9, Remove: []memberID{9}, Record: true}
	for _, text := range []string{"partition@0:1|2,3,4,5,6,7,8,9", "heal@4900ms"} {
		f, err := ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, f)
	}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	tape := r.Tape
	if len(tape.Frames) != maxFrames || len(tape.Flights) != maxFlights || tape.LeftOut == 0 {
		t.Errorf("%d frames, %d flights, %d left out", len(tape.Frames), len(tape.Flights), tape.LeftOut)
	}
	for _, line := range r.Lines() {
		if line.Frame >= maxFrames {
			t.Fatalf("line %q has frame %d", line.Text, line.Frame)
		}
	}
	text, err := json.Marshal(tape)
	if err != nil || len(text) > 16<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// Ensure that each story has moments to look at, in order, with its rule and without, and that each of them is found, and has two
// sentences.
func TestStory_Moments(t *testing.T) {
	known := map[string]bool{}
	for _, s := range Stories() {
		known[s.Name] = true
		for _, safe := range []bool{true, false} {
			r, err := s.Record(safe)
			if err != nil {
				t.Fatal(err)
			}
			found := s.Moments(r, safe)
			var want []moment
			for _, m := range moments[s.Name] {
				if m.with == both || (m.with == kept) == safe {
					want = append(want, m)
				}
			}
			if len(found) < 3 {
				t.Errorf("%s, safe %v: %d moments", s.Name, safe, len(found))
			}
			for i, m := range want {
				if i >= len(found) || found[i].Text != m.text {
					t.Errorf("%s, safe %v: nothing begins with %q after the moment before", s.Name, safe, m.at)
					break
				}
				shows := slices.ContainsFunc(r.Lines(), func(line Line) bool {
					return line.Frame == found[i].Frame && strings.Contains(line.Text, string(m.at))
				})
				if !shows || i > 0 && found[i].Frame < found[i-1].Frame {
					t.Errorf("%s, safe %v: frame %d does not show %q, or is before the moment before", s.Name, safe, found[i].Frame, m.at)
				}
			}
			for _, m := range found {
				if stops := strings.Count(m.Text+" ", ". "); stops != 2 || !strings.HasSuffix(m.Text, ".") {
					t.Errorf("%s: %d sentences: %q", s.Name, stops, m.Text)
				}
			}
		}
	}
	for name := range moments {
		if !known[name] {
			t.Errorf("moments of %s, which is no story", name)
		}
	}
}

// Ensure that the fewest crashes that stop a change are what its quorums say: by one entry for one voter a majority of the new
// voters must be gone, and with two sets a majority of one of them is enough.
func TestFewest(t *testing.T) {
	for _, tc := range []struct {
		protocol string
		o        Options
		want     [stageCount]int
	}{
		{"single", Options{From: 3, Add: 1}, [stageCount]int{2, 2, 2, 2}},
		{"joint", Options{From: 3, Add: 2}, [stageCount]int{2, 2, 2, 3}},
		{"single", Options{From: 1, Add: 1}, [stageCount]int{1, 1, 1, 1}},
	} {
		tc.o.SetProtocol(tc.protocol)
		got, err := fewest(&tc.o)
		if err != nil || got != tc.want {
			t.Errorf("%s from %d: %v, %v; want %v", tc.protocol, tc.o.From, got, err, tc.want)
		}
	}
}
