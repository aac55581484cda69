package backup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Bounds of a manifest.
const (
	MaxManifestBytes = 128 << 20 // of the object; encrypted, with its list of objects
	maxManifestPlain = 48 << 20
	MaxFiles         = 150_000
	maxTextBytes     = 1 << 10
)

// manifestShape is that of a manifest: some lists may be of fields that this build does not know.
var manifestShape = jsonShape{MaxFiles + 1<<10, 4 * int64(unsafe.Sizeof(File{}))}

// ManifestWithin is the largest manifest that can be read in so many bytes of memory; zero: any one.
func ManifestWithin(most int64) int64 {
	if most <= 0 {
		return MaxManifestBytes
	}
	return min(MaxManifestBytes, most/jsonCopies)
}

// manifestVersion is the number of the form. A later build adds fields that this one may pass over, or raises it.
const manifestVersion = 1

// File is a file of a checkpoint.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Hash Hash   `json:"sha256"` // of its object
	// Key decrypts the object, which has the file's size; nil: it is in the clear.
	Key *FileKey `json:"key,omitempty"`
}

// Manifest says what a base consists of, and which state it is. Sums and ids are in hexadecimal digits, as in names.
type Manifest struct {
	Version  int             `json:"version"`
	Cluster  Hex             `json:"cluster"`
	Epoch    uint64          `json:"epoch"`
	Member   Hex             `json:"member"` // the member that made it
	Index    consensus.Index `json:"index"`  // of the last entry applied
	Term     consensus.Term  `json:"term"`
	Revision kv.Revision     `json:"revision"`
	Since    consensus.Index `json:"since"` // where the chain began
	Sum      Hex             `json:"sum"`   // of the chain
	// Label is the sum of the name, of a manifest that is encrypted.
	Label Hex         `json:"label,omitempty"`
	Level level.Level `json:"level"` // the feature level of the store
	Build string      `json:"build"` // of the member, for operators
	Time  int64       `json:"time"`  // milliseconds since 1970: see Moment
	Files []File      `json:"files"` // sorted by name
}

// Hex is a number that JSON tools must not take for a float.
type Hex uint64

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, number, uint64(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) error {
	n, ok := parseNumber(string(text))
	if !ok {
		return fmt.Errorf("%w: number %q", ErrDamaged, excerpt(text))
	}
	*h = Hex(n)
	return nil
}

// MemberID is the member that made the base.
func (m *Manifest) MemberID() consensus.MemberID { return consensus.MemberID(m.Member) }

// Point is the point of the base.
func (m *Manifest) Point() Point { return Point{m.Index, uint64(m.Sum)} }

// Head is the state of the base.
func (m *Manifest) Head() Head { return Head{m.Epoch, m.Point(), Moment{m.Revision, m.Time}, 0} }

// SizeBytes is the size of all files.
func (m *Manifest) SizeBytes() (total int64) {
	for i := range m.Files {
		total += m.Files[i].Size
	}
	return total
}

// Encode encodes a manifest in the clear and names it.
func (m *Manifest) Encode() (BaseName, []byte) { return m.Seal(nil) }

// Seal encodes a manifest, encrypts it if there is a lock, and names it.
func (m *Manifest) Seal(lock *Lock) (BaseName, []byte) {
	m.Version, m.Label = manifestVersion, 0
	point := lock.secret().Label(m.Point())
	if lock != nil {
		m.Label = Hex(point.Sum)
	}
	content := indented(m)
	if lock != nil {
		content = indented(&sealedManifest{Version: manifestVersion, Objects: m.objects(), Sealed: lock.Seal(content)})
	}
	return BaseName{consensus.ClusterID(m.Cluster), m.Epoch, point, Moment{m.Revision, m.Time}, lock.Set(), HashOf(content)},
		content
}

func indented(v any) []byte {
	content, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return content
}

// sealedManifest is the object of a manifest that is encrypted. Which objects it needs is in the clear, since members that hold
// no identity decide which of them nothing needs any more, and look whether all are there. Their sizes and times show as much.
type sealedManifest struct {
	Version int      `json:"version"`
	Objects []Object `json:"objects"`
	Sealed  []byte   `json:"sealed"`
}

// Object is an object that a base needs.
type Object struct {
	Hash Hash  `json:"sha256"`
	Size int64 `json:"size"`
}

// objects are those of the files, each once, sorted.
func (m *Manifest) objects() []Object {
	list := make([]Object, len(m.Files))
	for i := range m.Files {
		list[i] = Object{m.Files[i].Hash, m.Files[i].Size}
	}
	slices.SortFunc(list, func(a, b Object) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
	return slices.Compact(list)
}

// ObjectsOf returns which objects the base of a manifest needs, whether or not it is encrypted, sorted by hash.
func ObjectsOf(name *BaseName, content []byte) ([]Object, error) {
	return ObjectsWithin(name, content, 0)
}

// ObjectsWithin is ObjectsOf in so many bytes of memory: TooLargeError. Zero: in what a manifest takes at most.
func ObjectsWithin(name *BaseName, content []byte, most int64) ([]Object, error) {
	if name.Set != 0 {
		outer, err := decodeSealed(name, content, most)
		if err != nil {
			return nil, err
		}
		return outer.Objects, nil
	}
	m, err := OpenManifestWithin(name, content, nil, most)
	if err != nil {
		return nil, err
	}
	return m.objects(), nil
}

// checkVersion wants the version of this build.
func checkVersion(version int) error {
	switch {
	case version > manifestVersion:
		return fmt.Errorf("manifest of version %d: %w", version, ErrLater)
	case version < manifestVersion:
		return fmt.Errorf("%w: there is no version %d", ErrDamaged, version)
	}
	return nil
}

// decodeAs reads JSON with the hash of a name, in so many bytes of memory.
func decodeAs(name *BaseName, content []byte, most int64, into any) error {
	switch {
	case len(content) > MaxManifestBytes:
		return fmt.Errorf("%w: a manifest of %d bytes", ErrDamaged, len(content))
	case HashOf(content) != name.Hash:
		return fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	if err := manifestShape.fits(content, most); err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%w: %s", ErrDamaged, excerpt(err.Error()))
	}
	return nil
}

func decodeSealed(name *BaseName, content []byte, most int64) (*sealedManifest, error) {
	var outer sealedManifest
	if err := decodeAs(name, content, most, &outer); err != nil {
		return nil, err
	}
	if err := checkVersion(outer.Version); err != nil {
		return nil, err
	}
	if len(outer.Objects) == 0 || len(outer.Objects) > MaxFiles || len(outer.Sealed) == 0 {
		return nil, fmt.Errorf("%w: it has %d objects, and %d encrypted bytes", ErrDamaged, len(outer.Objects),
			len(outer.Sealed))
	}
	return &outer, nil
}

// OpenManifest reads a manifest that has a name, and decrypts it if it is encrypted.
func OpenManifest(name *BaseName, content []byte, open Opener) (*Manifest, error) {
	return OpenManifestWithin(name, content, open, 0)
}

// OpenManifestWithin is OpenManifest in so many bytes of memory: TooLargeError. Zero: in what a manifest takes at most. The
// content and what it encrypts count as one each.
func OpenManifestWithin(name *BaseName, content []byte, open Opener, most int64) (*Manifest, error) {
	var m Manifest
	if name.Set == 0 {
		if err := decodeAs(name, content, most, &m); err != nil {
			return nil, err
		}
		return &m, m.check(name)
	}
	outer, err := decodeSealed(name, content, most)
	if err != nil {
		return nil, err
	}
	inner, err := opened(outer.Sealed, min(maxManifestPlain, ManifestWithin(most)), open)
	if err != nil {
		return nil, err
	}
	if err := manifestShape.fits(inner, most); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(inner, &m); err != nil {
		return nil, fmt.Errorf("%w: what it encrypts is no manifest", ErrDamaged) // a key is not repeated
	}
	if !slices.Equal(outer.Objects, m.objects()) {
		return nil, fmt.Errorf("%w: its files are not the objects that it lists", ErrDamaged)
	}
	return &m, m.check(name)
}

// check wants a manifest to be what its name says.
func (m *Manifest) check(name *BaseName) error {
	if err := checkVersion(m.Version); err != nil {
		return err
	}
	point := m.Point()
	if name.Set != 0 {
		point.Sum = uint64(m.Label)
	}
	switch {
	case consensus.ClusterID(m.Cluster) != name.Cluster || m.Epoch != name.Epoch || point != name.Point ||
		Moment{m.Revision, m.Time} != name.Moment:
		return fmt.Errorf("%w: it is of another state than its name says", ErrDamaged)
	case m.Level < level.First || !sensible(uint64(m.Since)) || len(m.Build) > maxTextBytes:
		return fmt.Errorf("%w: level, since or build", ErrDamaged)
	}
	return m.checkFiles(name.Set != 0)
}

func (m *Manifest) checkFiles(sealed bool) error {
	if len(m.Files) == 0 || len(m.Files) > MaxFiles {
		return fmt.Errorf("%w: %d files", ErrDamaged, len(m.Files))
	}
	total := uint64(0)
	for i := range m.Files {
		f := &m.Files[i]
		if !validFile(f.Name) || i > 0 && m.Files[i-1].Name >= f.Name || f.Size < 0 || (f.Key != nil) != sealed {
			return fmt.Errorf("%w: file %q of %d bytes", ErrDamaged, excerpt(f.Name), f.Size)
		}
		if total += uint64(f.Size); total > maxNumber {
			return fmt.Errorf("%w: files of too many bytes", ErrDamaged)
		}
	}
	return nil
}

// validFile refuses what could lead out of a directory.
func validFile(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxTextBytes && !strings.ContainsAny(name, "/\\\x00")
}

// SortFiles sorts files as a manifest has them.
func SortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// Gap is a note that entries were applied and never shipped: between After and Until no point can be restored.
type Gap struct {
	Version int             `json:"version"`
	Cluster Hex             `json:"cluster"`
	Member  Hex             `json:"member"` // the member that gave up
	After   consensus.Index `json:"after"`  // the last entry before, of a segment or a base
	Until   consensus.Index `json:"until"`  // the first entry that is shipped again
	Time    int64           `json:"time"`   // milliseconds since 1970
	Reason  string          `json:"reason"`
}

// Encode encodes a gap in the clear and names it.
func (g *Gap) Encode() (GapName, []byte) { return g.Seal(nil) }

// Seal encodes a gap, encrypts it if there is a lock, and names it.
func (g *Gap) Seal(lock *Lock) (GapName, []byte) {
	g.Version = manifestVersion
	content := indented(g)
	if lock != nil {
		content = lock.seal(content)
	}
	return GapName{consensus.ClusterID(g.Cluster), g.After, g.Until, g.Time, lock != nil, HashOf(content)}, content
}

// OpenGap reads a gap that has a name, and decrypts it if it is encrypted.
func OpenGap(name *GapName, content []byte, open Opener) (*Gap, error) {
	if len(content) > MaxGapBytes || HashOf(content) != name.Hash {
		return nil, fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	if name.Sealed {
		var err error
		if content, err = unseal(content, MaxGapBytes, open); err != nil {
			return nil, err
		}
	}
	var g Gap
	if err := json.Unmarshal(content, &g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case g.Version > manifestVersion:
		return nil, fmt.Errorf("gap of version %d: %w", g.Version, ErrLater)
	case g.Version < manifestVersion || consensus.ClusterID(g.Cluster) != name.Cluster || g.After != name.After ||
		g.Until != name.Until || g.Time != name.Time || len(g.Reason) > maxTextBytes:
		return nil, fmt.Errorf("%w: it says something else than its name", ErrDamaged)
	}
	return &g, nil
}

// MaxGapBytes bounds a note of a gap.
const MaxGapBytes = 64 << 10
