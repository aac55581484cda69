package tidy_test

import (
	"slices"
	"strings"
	"testing"
)

// layers says what a package may import: packages of lower layers, and of its own group in its own layer.
// DO NOT CHANGE IT TO MAKE A BUILD PASS. A longer prefix wins.
var layers = []struct {
	prefix string
	layer  int
	group  string
}{
	{"api/", 0, "api"},
	{"docs", 0, "docs"}, // the documents, for a build that shows them
	{"internal/base/broadcast", 0, "broadcast"},
	{"internal/base/heavy", 0, "heavy"},
	{"internal/base/histogram", 0, "histogram"},
	{"internal/base/invariant", 0, "invariant"},
	{"internal/base/keyrange", 0, "keyrange"},
	{"internal/base/level", 0, "level"},
	{"internal/base/linked", 0, "linked"},
	{"internal/base/logpace", 0, "logpace"},
	{"internal/base/monotime", 0, "monotime"},
	{"internal/base/plural", 0, "plural"}, // how many there are, in words
	{"internal/base/printable", 0, "printable"},
	{"internal/base/reload", 0, "reload"},
	{"internal/base/testnet", 0, "testnet"},
	{"internal/base/tlsconn", 0, "tlsconn"},
	{"internal/base/typed", 0, "typed"}, // command lines that are printed for an operator
	{"internal/labweb", 0, "labweb"},    // files of a page; imports nothing
	{"internal/limits/memory", 0, "memory"},
	{"internal/rpc/h2", 0, "h2"},
	{"internal/audit", 1, "audit"}, // which calls are recorded, records, their verification
	{"internal/auth", 1, "values"},
	{"internal/base/env", 1, "env"},
	{"internal/base/tlsfiles", 1, "tlsfiles"},
	{"internal/config", 1, "config"},
	{"internal/consensus", 1, "values"},
	{"internal/consensus/rules", 1, "rules"}, // names and sentences
	{"internal/doctor", 1, "doctor"},         // a verdict on what members observe
	{"internal/identity", 1, "values"},
	{"internal/kv", 1, "values"},
	{"internal/ranking", 1, "ranking"}, // sums of what members counted
	{"internal/limits/admission", 1, "admission"},
	{"internal/limits/rates", 2, "rates"}, // rules of users and prefixes, which the state machine keeps
	{"internal/server/discovery", 1, "discovery"},
	{"internal/server/tracing", 1, "tracing"}, // spans of calls, for a collector
	{"internal/undelete", 1, "undelete"},      // a client: what is restored of the keys that were deleted
	{"internal/audit/", 2, "audit"},           // writes records to sinks
	{"internal/auth/", 2, "auth"},
	{"internal/backup", 2, "backup"},
	{"internal/consensus/", 2, "consensus"},
	{"internal/storage/", 2, "storage"},
	{"internal/transport", 2, "transport"},
	{"internal/backup/fetch", 3, "backup"}, // reads places
	{"internal/backup/history", 3, "backup"},
	{"internal/backup/seal", 3, "backup"}, // encrypts to recipients
	{"internal/kv/", 3, "kv"},
	{"internal/limits/answers", 3, "answers"},
	{"internal/member/epoch", 3, "epoch"},
	{"internal/member/groupcommit", 3, "groupcommit"},
	{"internal/member/offers", 3, "offers"},
	{"internal/member/peercall", 3, "peercall"}, // what members ask each other
	{"internal/membership", 3, "membership"},
	{"internal/model", 3, "model"},
	{"client", 4, "client"},                   // users import it: clientImports says what it may import itself
	{"internal/backup/etcdfile", 4, "backup"}, // what works with the state machine
	{"internal/backup/perform", 4, "backup"},
	{"internal/backup/feed", 4, "backup"},
	{"internal/backup/replay", 4, "backup"},
	{"internal/backup/prove", 4, "backup"},
	{"internal/backup/attempt", 4, "backup"}, // what a member does that is appointed to prove
	{"internal/backup/survey", 4, "backup"},  // one look at a place
	{"internal/backup/backuptest", 4, "backup"},
	{"internal/ctl", 4, "ctl"},
	{"internal/member", 4, "member"},
	{"internal/nativeclient", 4, "client"}, // what the client decides; the simulator runs it, too
	{"internal/console", 5, "console"},     // a client of the API, within the process
	{"internal/rpc", 5, "rpc"},
	{"internal/rpc/grpcproxy", 6, "grpcproxy"},
	{"internal/server", 6, "server"},
	{"internal/sim", 6, "sim"},
	{"cmd/", 7, "cmd"},
	{"internal/tidy", 7, "tidy"},
	{"operator", 7, "operator"}, // a module of its own: runs clusters in Kubernetes
	{"release", 7, "release"},   // a module of its own, which imports nothing of the product
	{"test/", 7, "test"},
}

func layerOf(dir string) (layer int, group string, ok bool) {
	longest := -1
	for _, f := range layers {
		match := dir == f.prefix || strings.HasPrefix(dir, strings.TrimSuffix(f.prefix, "/")+"/") ||
			strings.HasSuffix(f.prefix, "/") && strings.HasPrefix(dir, f.prefix)
		if strings.HasSuffix(f.prefix, "/") && dir == strings.TrimSuffix(f.prefix, "/") {
			match = false
		}
		if match && len(f.prefix) > longest {
			layer, group, ok, longest = f.layer, f.group, true, len(f.prefix)
		}
	}
	return layer, group, ok
}

// TestLayers refuses imports of a higher layer, and of another group of the same layer.
func TestLayers(t *testing.T) { check(t, checkLayers) }

func checkLayers(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		layer, group, ok := layerOf(f.dir)
		if !ok {
			p.addf("%s: %s has no layer: give it one in layers_test.go", f.path, f.dir)
			continue
		}
		for _, imported := range f.imports() {
			target, own := strings.CutPrefix(imported, module+"/")
			if !own || f.test {
				continue
			}
			lower, other, ok := layerOf(target)
			if !ok {
				p.addf("%s: imports %s, which has no layer", f.path, target)
				continue
			}
			port := group == "env" && other == "values" // ports use the value types of consensus and kv
			if !port && (lower > layer || lower == layer && other != group) {
				p.addf("%s: layer %d (%s) may not import %s of layer %d (%s)", f.path, layer, group, target, lower, other)
			}
		}
	}
	return p
}

// clientImports are the internal packages that the native client uses, so that proposals are counted and offered by one code.
var clientImports = []string{
	"internal/base/monotime", "internal/consensus", "internal/consensus/quorum", "internal/consensus/tally", "internal/member/offers", "internal/nativeclient",
}

// TestGroups keeps consensus and kv apart: neither imports the other, but for the value types of package consensus.
func TestGroups(t *testing.T) { check(t, checkGroups) }

func checkGroups(r *tree) []string {
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
				p.addf("%s: kv may import the value types of package consensus, not %s", f.path, target)
			case (f.dir == "client" || f.dir == "internal/nativeclient") && strings.HasPrefix(target, "internal/") && !slices.Contains(clientImports, target):
				p.addf("%s: users link the client: it may import %v of internal, not %s", f.path, clientImports, target)
			case strings.HasPrefix(target, "internal/sim") && !strings.HasPrefix(f.dir, "internal/sim") &&
				!strings.HasPrefix(f.dir, "cmd/"):
				p.addf("%s: only commands and tests import the simulator", f.path)
			case target == "internal/kv/nextlevel" && !strings.HasPrefix(f.dir, "internal/sim"):
				p.addf("%s: only tests and the simulator make up a feature level", f.path)
			}
		}
	}
	return p
}

// confinedImports are imports that one package keeps for itself.
var confinedImports = []struct{ imported, only, reason string }{
	{"github.com/cockroachdb/pebble/v2", "internal/storage/engine", "the engine is a port: use internal/storage/engine"},
	{"filippo.io/age", "internal/backup/seal", "who reads a backup is decided in one place"},
	{"go.etcd.io/bbolt", "internal/storage/etcdbackup", "bbolt is only the format of etcd's backups"},
	{"github.com/minio/minio-go/v7", "internal/storage/objects/s3", "places for objects are a port: use internal/storage/objects"},
	{"github.com/spf13/cobra", "internal/ctl", "subcommands live in internal/ctl"},
}

// pebblesFiles is Pebble's port to the disk, with what lies below it, and knowPebblesFiles are the packages that may import it.
const pebblesFiles = "github.com/cockroachdb/pebble/v2/vfs"

var knowPebblesFiles = []string{"internal/storage/engine", "internal/storage/files", "internal/storage/files/filestest"}

// TestConfinedImports keeps a library in one package, where it can be replaced.
func TestConfinedImports(t *testing.T) { check(t, checkConfined) }

func checkConfined(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		for _, imported := range f.imports() {
			for _, confined := range confinedImports {
				inside := f.dir == confined.only || strings.HasPrefix(f.dir, confined.only+"/") || strings.HasPrefix(f.dir, "cmd/") ||
					f.dir == "release" || f.dir == "operator/internal/plugin" // commands, too
				if imported == confined.imported && !inside && !f.test {
					p.addf("%s: imports %s: %s", f.path, imported, confined.reason)
				}
			}
			if strings.HasPrefix(imported, pebblesFiles) && !slices.Contains(knowPebblesFiles, f.dir) { // tests have no need, either
				p.addf("%s: imports %s: the port to the disk is env.FS; storage/files has the disk, and files/filestest has "+
					"file systems for tests", f.path, imported)
			}
		}
	}
	return p
}

// portable are packages that must build for WebAssembly, with all that they import. Pebble does not: its file systems are those of
// operating systems.
var portable = []string{
	"internal/sim/lab", "internal/sim/lab/player", "cmd/quoratelab", "internal/sim/check", "internal/sim/disk", "internal/storage/wal", "internal/storage/snapshot",
	"internal/storage/reserve",
}

const unportable = "github.com/cockroachdb/pebble/"

// TestPortable keeps the laboratory, the laws of the simulator, its disk, and all that stands on env.FS alone free of Pebble.
func TestPortable(t *testing.T) { check(t, checkPortable) }

func checkPortable(r *tree) []string {
	files := map[string][]*file{}
	for i := range r.files {
		if f := &r.files[i]; !f.test {
			files[f.dir] = append(files[f.dir], f)
		}
	}
	var p report
	for _, root := range portable {
		by := map[string]string{root: ""} // who imports it first
		for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
			for _, f := range files[queue[0]] {
				for _, imported := range f.imports() {
					target, own := strings.CutPrefix(imported, module+"/")
					if strings.HasPrefix(imported, unportable) {
						p.addf("%s: imports %s, and %s, which must build for WebAssembly, imports it: %s", f.path, imported, root,
							chain(by, f.dir))
					}
					if _, known := by[target]; own && !known {
						by[target] = f.dir
						queue = append(queue, target)
					}
				}
			}
		}
	}
	return p
}

// chain names the packages through which a package is imported.
func chain(by map[string]string, dir string) string {
	text := dir
	for dir = by[dir]; dir != ""; dir = by[dir] {
		text = dir + " → " + text
	}
	return text
}
