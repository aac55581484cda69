package main

// Product says what is released. Tests release a program of a few lines in the place of Quorate.
type Product struct {
	Name, Main string // the program, and its package in the repository
	Variable   string // which the linker sets to the version
	Targets    []Target
	// Before are arguments of the go command, which makes files for the build that git ignores; none: nothing is to be made.
	// The files are a function of the commit and the toolchain, like the binary that embeds them.
	Before []string
}

// Target is a platform, as the go command names it.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "_" + t.Arch }

// quorate is released for the platforms on which members run. On darwin it is a client and a cluster for development.
var quorate = Product{
	Name: "quorate", Main: "./cmd/quorate", Variable: "github.com/quorate/quorate/internal/config.Version",
	Targets: []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}},
	Before:  []string{"run", "./cmd/quoratesim", "lab", "--embed"}, // the laboratory for a browser
}

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
	SBOM       Kind = "bill of materials"
	Provenance Kind = "provenance"
	Sums       Kind = "sums"
)

// sumsName is the file of sums, which all tools know by this name.
const sumsName = "SHA256SUMS"
