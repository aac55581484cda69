package tidy_test

import (
	"slices"
	"strings"
	"testing"
)

// floors is the house: a package may import packages of lower floors, and of its own realm on its own floor.
// DO NOT CHANGE IT TO MAKE A BUILD PASS. A longer prefix wins.
var floors = []struct {
	prefix string
	floor  int
	realm  string
}{
	{"internal/invariant", 0, "invariant"},
	{"internal/keyrange", 0, "keyrange"},
	{"internal/linked", 0, "linked"},
	{"internal/config", 0, "config"},
	{"api/", 0, "api"},
	{"internal/testnet", 0, "testnet"},
	{"client", 4, "client"}, // what users import: clientKnows says what of the inside
	{"internal/consensus", 1, "words"},
	{"internal/kv", 1, "words"},
	{"internal/identity", 1, "words"},
	{"internal/env", 1, "env"},
	{"internal/admission", 1, "admission"},
	{"internal/watchdog", 2, "watchdog"},
	{"internal/consensus/", 2, "consensus"},
	{"internal/storage/", 2, "storage"},
	{"internal/transport", 2, "transport"},
	{"internal/kv/", 3, "kv"},
	{"internal/epoch", 3, "epoch"},
	{"internal/membership", 3, "membership"},
	{"internal/autopilot", 3, "membership"}, // what a leader does for the membership, over ports
	{"internal/peercall", 3, "peercall"},    // what members ask each other
	{"internal/model", 3, "model"},
	{"internal/offers", 3, "fastpath"},
	{"internal/member", 4, "member"},
	{"internal/clients", 4, "member"},
	{"internal/node", 4, "member"},
	{"internal/proposals", 4, "member"},
	{"internal/datadir", 4, "member"},
	{"internal/recovery", 4, "member"},
	{"internal/integrity", 4, "member"},
	{"internal/snapshots", 4, "member"},
	{"internal/expiry", 4, "member"},
	{"internal/upkeep", 4, "member"},
	{"internal/ctl", 4, "ctl"},
	{"internal/rpc", 5, "rpc"},
	{"internal/server", 6, "server"},
	{"internal/sim", 6, "sim"},
	{"cmd/", 7, "cmd"},
	{"internal/tidy", 7, "tidy"},
	{"test/", 7, "test"},
}

func place(dir string) (floor int, realm string, ok bool) {
	longest := -1
	for _, f := range floors {
		match := dir == f.prefix || strings.HasPrefix(dir, strings.TrimSuffix(f.prefix, "/")+"/") ||
			strings.HasSuffix(f.prefix, "/") && strings.HasPrefix(dir, f.prefix)
		if strings.HasSuffix(f.prefix, "/") && dir == strings.TrimSuffix(f.prefix, "/") {
			match = false
		}
		if match && len(f.prefix) > longest {
			floor, realm, ok, longest = f.floor, f.realm, true, len(f.prefix)
		}
	}
	return floor, realm, ok
}

// TestFloors keeps the house standing: nobody reaches upwards, or across into another realm of the same floor.
func TestFloors(t *testing.T) { hold(t, floorsHold) }

func floorsHold(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		floor, realm, ok := place(f.dir)
		if !ok {
			p.addf("%s: %s has no floor: give it one in floors_test.go", f.path, f.dir)
			continue
		}
		for _, imported := range f.imports() {
			target, own := strings.CutPrefix(imported, module+"/")
			if !own || f.test {
				continue
			}
			lower, other, ok := place(target)
			if !ok {
				p.addf("%s: imports %s, which has no floor", f.path, target)
				continue
			}
			mayKnow := realm == "env" && other == "words" // a port speaks in words
			if !mayKnow && (lower > floor || lower == floor && other != realm) {
				p.addf("%s: floor %d (%s) may not import %s of floor %d (%s)", f.path, floor, realm, target, lower, other)
			}
		}
	}
	return p
}

// clientKnows is what the native client uses of the inside: how proposals are counted and offered exists once.
var clientKnows = []string{"internal/consensus", "internal/consensus/quorum", "internal/consensus/tally", "internal/offers"}

// TestRealms keeps the two realms apart: agreement knows nothing of storage's meaning, and the other way round.
func TestRealms(t *testing.T) { hold(t, realmsApart) }

func realmsApart(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if f.test {
			continue
		}
		for _, imported := range f.imports() {
			target, own := strings.CutPrefix(imported, module+"/")
			switch {
			case !own:
			case strings.HasPrefix(f.dir, "internal/consensus") && strings.HasPrefix(target, "internal/kv"):
				p.addf("%s: consensus may not know %s: payloads are opaque to it", f.path, target)
			case strings.HasPrefix(f.dir, "internal/kv") && strings.HasPrefix(target, "internal/consensus/"):
				p.addf("%s: kv may know the words of consensus, not %s", f.path, target)
			case f.dir == "client" && strings.HasPrefix(target, "internal/") && !slices.Contains(clientKnows, target):
				p.addf("%s: users link the client: it may know %v of the inside, not %s", f.path, clientKnows, target)
			case strings.HasPrefix(target, "internal/sim") && !strings.HasPrefix(f.dir, "internal/sim") &&
				!strings.HasPrefix(f.dir, "cmd/"):
				p.addf("%s: only commands and tests import the simulator", f.path)
			}
		}
	}
	return p
}

// fences are imports that one package keeps for itself.
var fences = []struct{ imported, only, reason string }{
	{"github.com/cockroachdb/pebble/v2", "internal/storage/engine", "the engine is a port: use internal/storage/engine"},
	{"go.etcd.io/bbolt", "internal/storage/etcdbackup", "bbolt is only the format of etcd's backups"},
	{"github.com/spf13/cobra", "internal/ctl", "subcommands live in internal/ctl"},
}

// TestFences keeps libraries where they can be replaced.
func TestFences(t *testing.T) { hold(t, fencesHold) }

func fencesHold(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		for _, imported := range f.imports() {
			for _, fence := range fences {
				inside := f.dir == fence.only || strings.HasPrefix(f.dir, fence.only+"/") || strings.HasPrefix(f.dir, "cmd/")
				if imported == fence.imported && !inside && !f.test {
					p.addf("%s: imports %s: %s", f.path, imported, fence.reason)
				}
			}
		}
	}
	return p
}
