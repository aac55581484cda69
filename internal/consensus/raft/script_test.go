package raft_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that the scripts of testdata play as written. Each line of a block is a command; the output is the actions and events
// of the replicas. "run quiet" prints only what later commands ask for. Rewrite with -rewrite, and commit a difference only if
// you understand it.
func TestReplica_Step_scripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{out: &strings.Builder{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "without" {
				return without(t, d)
			}
			s.out.Reset()
			for line := range strings.Lines(d.Input) {
				if err := s.play(strings.Fields(line), !d.HasArg("quiet")); err != nil {
					t.Fatalf("%s: %s: %v", d.Pos, strings.TrimSpace(line), err)
				}
			}
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

type script struct {
	*cluster
	out *strings.Builder
}

// play runs one command and, unless it ends in "hold", lets the cluster settle.
func (s *script) play(words []string, loud bool) error {
	if len(words) == 0 {
		return nil
	}
	hold := words[len(words)-1] == "hold"
	if hold {
		words = words[:len(words)-1]
	}
	name, args := words[0], words[1:]
	if name == "cluster" {
		return s.start(args)
	}
	if s.cluster == nil {
		return fmt.Errorf("no cluster yet")
	}
	s.trace = nil
	if loud {
		s.trace = s.out
		s.printf("> %s", strings.Join(words, " "))
	}
	if done, err := s.world(name, args); done || err != nil {
		return err
	}
	if err := s.member(name, args); err != nil {
		return err
	}
	if !hold {
		s.settle()
	}
	return nil
}

// start reads "cluster voters=1,2,3 learners=4 option=value".
func (s *script) start(args []string) error {
	var voters, learners []memberID
	var adapt []func(*raft.Options)
	lossy := false
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "voters":
			voters = parseIDs(value)
		case "learners":
			learners = parseIDs(value)
		case "message-bytes":
			adapt = append(adapt, func(o *raft.Options) { o.MaxMessageBytes = number })
		case "inflight":
			adapt = append(adapt, func(o *raft.Options) { o.MaxInflightMessages = number })
		case "uncommitted-bytes":
			adapt = append(adapt, func(o *raft.Options) { o.MaxUncommittedBytes = number })
		case "lossy":
			lossy = true
		case "fast":
			adapt = append(adapt, func(o *raft.Options) { o.Fast.Footprint = footprintOf })
		case "lease":
			adapt = append(adapt, func(o *raft.Options) { o.LeaderLease = true })
		case "no-pre-vote":
			adapt = append(adapt, func(o *raft.Options) { o.PreVote, o.CheckQuorum = false, false })
		case "lax":
			adapt = append(adapt, func(o *raft.Options) { o.StrictReconfig = false })
		case "fault":
			without, err := drop(value)
			if err != nil {
				return err
			}
			adapt = append(adapt, func(o *raft.Options) { o.Dropped = without })
		default:
			return fmt.Errorf("no option %s", key)
		}
	}
	s.cluster = newCluster(voters, learners, func(o *raft.Options) {
		for _, f := range adapt {
			f(o)
		}
	})
	s.lossy = lossy
	return nil
}

func parseIDs(list string) []memberID {
	var ids []memberID
	for word := range strings.SplitSeq(list, ",") {
		id, _ := strconv.ParseUint(word, 10, 64)
		ids = append(ids, memberID(id))
	}
	return ids
}

// world plays the commands that concern no single member.
func (s *script) world(name string, args []string) (done bool, err error) {
	switch name {
	case "settle":
		s.settle()
	case "heal":
		clear(s.blocked)
	case "status":
		s.status()
	case "only":
		s.only(parseIDs(args[0])...)
	case "view":
		s.view()
	case "logs":
		for _, n := range s.nodes {
			fmt.Fprintf(s.out, "%v: %s\n", n.id, n.drawn())
		}
	case "applied":
		for _, n := range s.nodes {
			fmt.Fprintf(s.out, "%v: applied %v %v\n", n.id, n.store.position, n.store.commands)
		}
	case "tick":
		count, _ := strconv.Atoi(args[0])
		var ids []memberID
		if len(args) > 1 {
			ids = parseIDs(args[1])
		}
		s.tick(count, ids...)
	case "step":
		count, _ := strconv.Atoi(args[0])
		for range count {
			s.deliverFirst()
		}
	case "infer":
		s.infer = true
	case "held":
		s.held()
	case "fast-only":
		s.fastOnly()
	case "drop":
		s.printf("  %d messages lost", len(s.net))
		s.net = nil
	default:
		return false, nil
	}
	return true, nil
}

// view prints the status in short.
func (s *script) view() {
	for _, n := range s.nodes {
		if n.replica == nil {
			fmt.Fprintf(s.out, "%v: down\n", n.id)
			continue
		}
		st := n.replica.Status()
		fmt.Fprintf(s.out, "%v: %v term=%d commit=%d of %d config=%v %s", n.id, st.Role, st.Term, st.Commit, st.LastIndex,
			st.ConfigID, describeConfig(&st.Config))
		for what, is := range []bool{!st.ConfigSettled, st.Removed} {
			if is {
				fmt.Fprintf(s.out, " %s", []string{"unsettled", "removed"}[what])
			}
		}
		fmt.Fprintln(s.out)
	}
}

func (s *script) status() {
	for _, n := range s.nodes {
		if n.replica == nil {
			fmt.Fprintf(s.out, "%v: down\n", n.id)
			continue
		}
		st := n.replica.Status()
		fmt.Fprintf(s.out, "%v: %v term=%d leader=%v commit=%d applied=%d durable=%d last=%d config=%v %s",
			n.id, st.Role, st.Term, st.Leader, st.Commit, st.Applied, st.Durable, st.LastIndex, st.ConfigID, describeConfig(&st.Config))
		if st.Protocol != consensus.ProtocolAuto {
			fmt.Fprintf(s.out, " by %v", st.Protocol)
		}
		if !st.ConfigSettled {
			fmt.Fprintf(s.out, " unsettled")
		}
		if st.Removed {
			fmt.Fprintf(s.out, " removed")
		}
		fmt.Fprintln(s.out)
		for _, p := range st.Progress {
			fmt.Fprintf(s.out, "   %v %s match=%d next=%d", p.ID, p.State, p.Match, p.Next)
			for what, is := range []bool{p.Paused, !p.RecentActive, p.Leaving} {
				if is {
					fmt.Fprintf(s.out, " %s", []string{"paused", "inactive", "leaving"}[what])
				}
			}
			fmt.Fprintln(s.out)
		}
	}
}

// member plays the commands whose first argument is a member.
func (s *script) member(name string, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command %s", name)
	}
	id := parseIDs(args[0])[0]
	if name == "join" {
		s.add(id, consensus.Config{})
		return nil
	}
	n := s.node(id)
	args = args[1:]
	var numbers []uint64
	for _, arg := range args {
		number, _ := strconv.ParseUint(arg, 10, 64)
		numbers = append(numbers, number)
	}
	switch name {
	case "elect":
		s.elect(id)
	case "campaign":
		n.step(raft.Campaign{})
	case "propose":
		s.propose(id, args...)
	case "fast":
		s.proposeFast(id, args...)
	case "retry":
		n.step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(numbers[0], args[1])}, Fast: true})
	case "read":
		n.step(raft.Read{IDs: numbers, Spread: s.infer})
	case "transfer":
		n.step(raft.Transfer{To: memberID(numbers[0])})
	case "compact":
		n.compact(consensus.Index(numbers[0]))
	case "base":
		meta := n.replica.Base()
		fmt.Fprintf(s.out, "%v: log after %s\n", id, describeMeta(&meta))
		meta = n.store.meta()
		fmt.Fprintf(s.out, "%v: store at %s, buried %v\n", id, describeMeta(&meta), n.store.tombs)
	case "slow-reply":
		n.slowReply = true
	case "reply":
		n.slowReply = false
		n.reply()
	case "hold-apply":
		n.holdApply = true
	case "apply":
		n.apply(int(numbers[0]))
	case "free-apply":
		n.holdApply = false
		n.apply(len(n.toApply))
	case "slow-install":
		n.slowInstall = true
	case "install":
		n.slowInstall = false
		n.inbox, n.installs = append(n.inbox, n.installs...), nil
	case "unreachable":
		n.step(raft.Unreachable{Member: memberID(numbers[0])})
	case "isolate":
		s.isolate(id, true)
	case "join-again":
		s.isolate(id, false)
	case "mute":
		s.blocked[[2]memberID{id, memberID(numbers[0])}] = true
	case "cut":
		s.cut(id, memberID(numbers[0]))
	case "crash":
		n.crash()
	case "restart":
		n.start()
	case "slow-disk":
		n.slowDisk = true
	case "fast-disk":
		n.slowDisk = false
		n.sync(len(n.pending))
	case "sync":
		n.sync(int(numbers[0]))
	case "log":
		return s.setLog(n, args)
	case "change":
		request, err := parseRequest(args)
		if err != nil {
			return err
		}
		s.request(id, request)
	default:
		return fmt.Errorf("no command %s", name)
	}
	return nil
}

// parseRequest reads "[protocol=P] [expect=I.T.S] [abort] [KIND MEMBER]...".
func parseRequest(args []string) (request consensus.ChangeRequest, err error) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		key, value, _ := strings.Cut(word, "=")
		kind, known := slices.Index(changeNames, word), true
		switch {
		case key == "protocol":
			request.Protocol, known = consensus.ParseProtocol(value)
		case key == "expect":
			_, err = fmt.Sscanf(value, "%d.%d.%d", &request.Expected.Index, &request.Expected.Term, &request.Expected.Stage)
		case word == "abort":
			request.Abort = true
		case kind > 0 && len(args) > 0:
			request.Steps = append(request.Steps, consensus.ChangeStep{
				Kind: consensus.ChangeKind(kind), Member: testMember(parseIDs(args[0])[0]),
			})
			args = args[1:]
		default:
			known = false
		}
		if err != nil || !known {
			return request, fmt.Errorf("change: what is %s?", word)
		}
	}
	return request, nil
}

// setLog restarts a member with a log of the given terms after entry 1, and the last of them as its term.
func (s *script) setLog(n *node, terms []string) error {
	n.crash()
	n.disk.entries = nil
	for i, word := range terms {
		if term, ok := strings.CutPrefix(word, "term="); ok {
			number, _ := strconv.ParseUint(term, 10, 64)
			n.disk.hard.Term = consensus.Term(number)
			continue
		}
		term, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return err
		}
		n.disk.entries = append(n.disk.entries, entry{
			Index: consensus.Index(i + 2), Term: consensus.Term(term), Kind: consensus.EntryNoop,
		})
		n.disk.hard.Term = consensus.Term(term)
	}
	n.log = slices.Clone(n.disk.entries)
	n.start()
	return nil
}
