package tidy_test

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	citedFile = regexp.MustCompile(`[\w./-]*\w\.(?:go|md|tla)\b`)
	citedTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*\*?`)
	citedADR  = regexp.MustCompile(`\bADR (\d{4})\b`)
	citedPath = regexp.MustCompile("`((?:internal|cmd|test|docs|client|api|spec)/[\\w./-]+)`")
	citedFlag = regexp.MustCompile("(?:^|[\\s`(\\[])--([a-z][a-z0-9-]+)")
)

// citesEtcd are documents about etcd's tests.
var citesEtcd = []string{"docs/compatibility.md", "test/compat/README.md", "docs/robustness.md"}

// elsewhere are files that texts cite and that are not ours.
var elsewhere = []string{"server/start.go", "directory/file.go"} // examples of log lines

// foreignFlags belong to other programs that the documents use.
var foreignFlags = []string{
	"no-password",           // of etcdctl user add
	"http2-prior-knowledge", // curl
	"ignore-missing",        // sha256sum
	"read-only", "cap-drop", // docker
	"oldpackage",                                                              // rpm
	"etcd-prefix", "etcd-compaction-interval", "etcd-servers", "upload-certs", // kube-apiserver, kubeadm
	"from-literal", "all-namespaces", "print-value-only", // kubectl, etcdctl get
	"oldpackage",                                                                                                                      // rpm
	"create-namespace", "no-hooks", "reuse-values", "field-selector", "replicas", "cascade", "patch-file", "interactive", "from-file", // helm, kubectl
	"reset-then-reuse-values",                                      // helm
	"server-side", "force-conflicts", "as", "type", "grace-period", // kubectl
}

// TestReferences follows what comments and documents cite: files, tests, decisions, flags.
func TestReferences(t *testing.T) {
	check(t, checkComments)
	check(t, checkDocuments)
	check(t, checkFlagsExist)
}

// places are what can be cited: every file by any suffix of its path, every directory, every declared name.
type places struct {
	files map[string]bool
	names map[string]bool
	texts map[string]bool
}

func placesOf(r *tree) places {
	var p places
	p.names, p.texts = symbols(r)
	p.files = map[string]bool{}
	_ = fs.WalkDir(r.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".git") {
			return fs.SkipDir
		}
		for end := name; ; {
			p.files[end] = true
			_, rest, found := strings.Cut(end, "/")
			if !found {
				return nil
			}
			end = rest
		}
	})
	return p
}

// missing returns what a text cites that is not there.
func (p *places) missing(text string) []string {
	var lost []string
	for _, file := range citedFile.FindAllString(text, -1) {
		clean := strings.TrimPrefix(path.Clean(file), "../")
		if !p.files[strings.TrimLeft(clean, "./")] && !slices.Contains(elsewhere, file) {
			lost = append(lost, file)
		}
	}
	for _, name := range citedTest.FindAllString(text, -1) {
		if !p.declared(name) && !slices.Contains(elsewhere, name) {
			lost = append(lost, name)
		}
	}
	for _, match := range citedADR.FindAllStringSubmatch(text, -1) {
		found := false
		for file := range p.files {
			found = found || strings.HasPrefix(file, "adr/"+match[1]+"-")
		}
		if !found {
			lost = append(lost, match[0])
		}
	}
	return lost
}

// declared reports whether a name is declared, or begins one that is if it ends in an underscore or a star.
func (p *places) declared(name string) bool {
	if prefix := strings.TrimRight(name, "_*"); prefix != name {
		for full := range p.names {
			if strings.HasPrefix(full, prefix) {
				return true
			}
		}
	}
	return p.names[name]
}

func checkComments(r *tree) []string {
	var p report
	known := placesOf(r)
	for i := range r.files {
		f := &r.files[i]
		if f.made || f.dir == "internal/tidy" {
			continue
		}
		for _, group := range f.syntax.Comments {
			for _, lost := range known.missing(group.Text()) {
				p.addf("%s: cites %s, which is not in the tree", r.at(group), lost)
			}
		}
	}
	return p
}

func checkDocuments(r *tree) []string {
	var p report
	known := placesOf(r)
	for _, doc := range r.texts {
		if slices.Contains(citesEtcd, doc.path) {
			continue
		}
		lost := known.missing(link.ReplaceAllString(doc.content, ""))
		for _, match := range citedPath.FindAllStringSubmatch(doc.content, -1) {
			if !r.exists(strings.TrimSuffix(match[1], "/")) {
				lost = append(lost, match[1])
			}
		}
		for _, what := range lost {
			p.addf("%s: cites %s, which is not in the tree", doc.path, what)
		}
	}
	return p
}

// checkFlagsExist looks for each documented flag among the string constants of the programs, where flags are declared.
func checkFlagsExist(r *tree) []string {
	var p report
	_, texts := symbols(r)
	for _, doc := range r.texts {
		for _, match := range citedFlag.FindAllStringSubmatch(doc.content, -1) {
			if !texts[match[1]] && !slices.Contains(foreignFlags, match[1]) {
				p.addf("%s: there is no flag --%s", doc.path, match[1])
			}
		}
	}
	return p
}
