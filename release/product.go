package main

import (
	"path"
	"slices"
	"strings"
)

// Product says what is released. Tests release a program of a few lines in the place of Quorate.
type Product struct {
	Name, Main string // the program, and its package in the repository
	Variable   string // which the linker sets to the version
	Targets    []Target
	// Before are arguments of the go command, which makes files for the build that git ignores; none: nothing is to be made.
	// The files are a function of the commit and the toolchain, like the binary that embeds them.
	Before []string

	Dir    string   // of its module in the repository; empty: the root
	Linked []string // further names under which the program stands in the image
	Ports  []string // that the image names
	User   string   // whose the image's process is; empty: root, as etcd's image has it

	// Beside are programs that are released with it: a binary and its bill of materials for each target, and an image if it is
	// Imaged.
	Beside []Product
	Imaged bool
	Charts []string // of Helm, by their directories in the repository, which are named after them
}

// programAt tells which program a package is: empty is the product itself.
func (p Product) programAt(pkg string) (part string, known bool) {
	if strings.HasSuffix(pkg, strings.TrimPrefix(p.Main, ".")) {
		return "", true
	}
	for _, b := range p.Beside {
		if strings.HasSuffix(pkg, "/"+path.Join(b.Dir, b.Main)) {
			return b.Name, true
		}
	}
	return "", false
}

// partOf is the part that a name means: empty for the product itself.
func (p Product) partOf(name string) string {
	if name == p.Name {
		return ""
	}
	return name
}

// tags are those that the go command finds a version by: it wants the directory of a module before it. A version that is no
// release has none.
func (p Product) tags(v Version) (all []string) {
	if v.Tag() == "" {
		return nil
	}
	all = []string{v.Tag()}
	for _, b := range p.Beside {
		if tag := path.Join(b.Dir, v.Tag()); !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	return all
}

// Target is a platform, as the go command names it.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "_" + t.Arch }

// quorate is released for the platforms on which members run. On darwin it is a client and a cluster for development.
var quorate = Product{
	Name: "quorate", Main: "./cmd/quorate", Variable: versionVariable,
	Targets: []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}},
	Before:  []string{"run", "./cmd/quoratesim", "lab", "--embed"}, // the laboratory for a browser
	// Those of the files of etcd's image, in the place that its users call them at. A link named etcdctl or etcdutl is that
	// tool, and etcd is a member.
	Linked: []string{"etcd", "etcdctl", "etcdutl"}, Ports: []string{"2379/tcp", "2380/tcp"},
	Beside: []Product{operator, plugin}, Charts: []string{"deploy/charts/quorate", "deploy/charts/quorate-operator"},
}

var operator = Product{
	Name: "quorate-operator", Dir: "operator", Main: "./cmd/quorate-operator", Variable: versionVariable, Imaged: true,
	Targets: []Target{{"linux", "amd64"}, {"linux", "arm64"}}, Ports: []string{"8080/tcp", "8081/tcp"}, User: "65532:65532",
}

// plugin is for people: it runs where kubectl does.
var plugin = Product{
	Name: "kubectl-quorate", Dir: "operator", Main: "./cmd/kubectl-quorate", Variable: versionVariable,
	Targets: []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}},
}

const versionVariable = "github.com/quorate/quorate/internal/config.Version"

const (
	homepage   = "https://github.com/quorate/quorate"
	maintainer = "The Quorate maintainers <maintainers@quorate.example>"
	license    = "Apache-2.0"
	summary    = "Distributed key-value store that speaks etcd's API"
)

// packaged is where the repository has the units, the configuration file and the scripts of packages.
const packaged = "release/packaging"

// Kind is what a file of a release is.
type Kind string

// The kinds.
const (
	Binary     Kind = "binary"
	Archive    Kind = "archive"
	Deb        Kind = "deb"
	RPM        Kind = "rpm"
	Image      Kind = "image"
	Chart      Kind = "chart"
	SBOM       Kind = "bill of materials"
	Provenance Kind = "provenance"
	Sums       Kind = "sums"
)

// sumsName is the file of sums, which all tools know by this name.
const sumsName = "SHA256SUMS"
