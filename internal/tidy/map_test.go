package tidy_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	mapFile     = "ARCHITECTURE.md"
	maxMapLines = 280 // what is read in one sitting
	maxMapRow   = 160 // characters of a row of "Where do I change X"
)

// changes are things that people want to change, by words of their row in "Where do I change X", and where they are changed.
var changes = []struct{ words, place string }{
	{"default of one", "config/topics.go"},
	{"error text", "rpc/etcderr"},
	{"largest request", "rpc/options.go"},
	{"no goroutine", "rpc/call.go"},
	{"fragments", "kv/watch"},
	{"a quorum", "consensus/quorum/quorum.go"},
	{"conflicts on the fast path", "consensus/witness/claims.go"},
	{"block cache", "limits/memory/shares.go"},
	{"columns of", "ctl/member/list.go"},
	{"a metric", "server/metrics.go"},
	{"TLS", "server/certs"},
	{"end of leases", "member/expiry/{scanner,clock}.go"},
	{"vote while a leader is alive", "consensus/raft/gate.go"},
	{"field of a job", "membership/encode.go"},
	{"campaigns", "consensus/raft/election.go"},
	{"cordons", "membership.md"},
	{"put is decoded", "rpc/wire/request.go"},
	{"JSON gateway", "rpc/gateway"},
	{"automatic compaction", "server/autocompact.go"},
	{"locks and elections", "rpc/lockapi"},
	{"tracing", "tracing"},
	{"discovery", "server/discovery/join.go"},
	{"log format", "ctl/logging/handler.go"},
	{"feature gates", "config/gates.go"},
	{"alert rules", "contrib/monitoring/alerts.yaml"},
}

// TestMap keeps ARCHITECTURE.md short, and true: its layers name every package, its table of changes leads to what is there, and
// a name that stands beside a file is declared in it.
func TestMap(t *testing.T) {
	check(t, checkMap)
	check(t, checkMapOfChanges)
	check(t, checkNamesBesideFiles)
	check(t, checkDecisionsListed)
}

func checkMap(r *tree) []string {
	var p report
	text := r.read(mapFile)
	if lines := strings.Count(text, "\n"); lines > maxMapLines {
		p.addf("%s has %d lines, and %d at most are read in one sitting: move something to docs", mapFile, lines, maxMapLines)
	}
	named := packagesNamed(section(text, "Layers"))
	for i := range r.files {
		f := &r.files[i]
		dir := strings.TrimPrefix(f.dir, "internal/")
		if f.test || path.Base(f.dir) == "testdata" || strings.HasSuffix(dir, "test") || slices.Contains(named, dir) {
			continue
		}
		if top, _, _ := strings.Cut(dir, "/"); !slices.Contains(named, top+"/*") {
			p.addf("%s: no row of \"Layers\" names %s", mapFile, dir)
			named = append(named, dir)
		}
	}
	for _, name := range named {
		if name = strings.TrimSuffix(name, "/*"); !r.exists("internal/"+name) && !r.exists(name) {
			p.addf("%s: \"Layers\" names %s, which is not in the tree", mapFile, name)
		}
	}
	return p
}

// section returns what is below a heading, up to the next one.
func section(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n## "+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

var (
	inBraces    = regexp.MustCompile(`^([a-z0-9/]+/)\{([a-z0-9,]+)\}$`)
	packageName = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*(/\*)?$`)
)

// packagesNamed reads the second cells of the rows: names stand before a colon, with commas between them.
func packagesNamed(text string) []string {
	var names []string
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(line, "|---") {
			continue
		}
		for part := range strings.SplitSeq(cells[2], ";") {
			part, _, _ = strings.Cut(part, ":")
			for _, word := range strings.Fields(strings.ReplaceAll(part, ", ", " ")) {
				if match := inBraces.FindStringSubmatch(word); match != nil {
					for name := range strings.SplitSeq(match[2], ",") {
						names = append(names, match[1]+name)
					}
				} else if packageName.MatchString(word) && word != "packages" {
					names = append(names, word)
				}
			}
		}
	}
	return names
}

var placeAndNames = regexp.MustCompile("`([\\w./-]+)`((?: \\(`\\w+`\\))?)")

func checkMapOfChanges(r *tree) []string {
	var p report
	text := section(r.read(mapFile), "Where do I change X")
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if len(line) > maxMapRow {
			p.addf("%s: a row has more than %d characters: %s", mapFile, maxMapRow, line)
		}
		for _, match := range placeAndNames.FindAllStringSubmatch(line, -1) {
			place := match[1]
			if !r.exists("internal/"+place) && !r.exists(place) && strings.ContainsAny(place, "/.") {
				p.addf("%s: %s is not in the tree: %s", mapFile, place, line)
			}
			if name := strings.Trim(match[2], " (`)"); name != "" && !strings.Contains(r.read("internal/"+place), name) {
				p.addf("%s: %s has no %s", mapFile, place, name)
			}
		}
	}
	for _, change := range changes {
		found := false
		for line := range strings.SplitSeq(text, "\n") {
			found = found || strings.Contains(line, change.words) && strings.Contains(line, change.place)
		}
		if !found {
			p.addf("%s: no row with %q leads to %s", mapFile, change.words, change.place)
		}
	}
	return p
}

var (
	// besideFile is a file with names in parentheses, or after a comma within them: `a/b.go` (`F`, `T.G`), or (`a/b.go`, `F`).
	besideFile = regexp.MustCompile("`([\\w./-]+\\.go)`(?:\\s+\\(|,\\s+)((?:`[\\w.]+`(?:,\\s+)?)+)\\)")
	quotedName = regexp.MustCompile("`([\\w.]+)`")
)

// checkNamesBesideFiles wants a name that the map puts beside a Go file to be declared in that file.
func checkNamesBesideFiles(r *tree) []string {
	var p report
	for _, match := range besideFile.FindAllStringSubmatch(r.read(mapFile), -1) {
		f := r.cited(match[1])
		if f == nil {
			continue // checkDocuments says so
		}
		declares, _ := symbols(&tree{files: []file{*f}})
		for _, name := range quotedName.FindAllStringSubmatch(match[2], -1) {
			last := name[1][strings.LastIndex(name[1], ".")+1:]
			if !declares[last] {
				p.addf("%s: %s does not declare %s", mapFile, match[1], name[1])
			}
		}
	}
	return p
}

// cited returns the Go file that the map calls name; nil if there is none.
func (r *tree) cited(name string) *file {
	for _, folder := range []string{"internal/", "internal/consensus/", ""} {
		at := slices.IndexFunc(r.files, func(f file) bool { return f.path == folder+name })
		if at >= 0 {
			return &r.files[at]
		}
	}
	return nil
}

// checkDecisionsListed wants a row for each decision in the list of them.
func checkDecisionsListed(r *tree) []string {
	var p report
	list := r.read("docs/adr/README.md")
	for _, doc := range r.texts {
		dir, name := path.Split(doc.path)
		if dir == "docs/adr/" && name != "README.md" && !strings.Contains(list, "]("+name+")") {
			p.addf("docs/adr/README.md: no row for %s", name)
		}
	}
	return p
}
