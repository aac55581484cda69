package trail

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
)

// fakeFile is a FilePort in memory, which fails as it is told.
type fakeFile struct {
	files   [][]byte // put aside, the last one is written to
	most    int
	unseen  error  // of Look
	why     string // what Look says
	fails   error
	partial int // bytes taken of a write that fails
	synced  int
}

func (f *fakeFile) Write(lines []byte) (int, error) {
	n := len(lines)
	if f.fails != nil {
		n = min(f.partial, n)
	}
	last := len(f.files) - 1
	f.files[last] = append(f.files[last], lines[:n]...)
	return n, f.fails
}

func (f *fakeFile) Look() (string, error) { return f.why, f.unseen }

func (f *fakeFile) Full(more int) bool {
	return f.most > 0 && len(f.files[len(f.files)-1])+more > f.most
}

func (f *fakeFile) Renew(why string) error {
	if f.fails != nil {
		return f.fails
	}
	if why != audit.Rotated { // it is gone
		f.files = f.files[:len(f.files)-1]
	}
	f.files, f.why = append(f.files, nil), ""
	return nil
}

func (f *fakeFile) Sync() error {
	f.synced++
	return f.fails
}

func (f *fakeFile) Base() string { return "audit.log" }

// Close implements FilePort.
func (f *fakeFile) Close() error { return nil }

// shelf is a sink over a fake file.
type shelf struct {
	*Sink
	file *fakeFile
	now  time.Time
	made int
}

func newShelf(most, fileBytes int) *shelf {
	file := &fakeFile{files: [][]byte{nil}, most: fileBytes}
	s := newSink(SinkOptions{Name: "file", Port: file, Required: true,
		From: Resume{Chain: audit.Chain{ID: 7}, Why: audit.Begins}}, 1, most)
	return &shelf{Sink: s, file: file, now: time.Unix(1_800_000_000, 0)}
}

// call offers the record of one more call.
func (s *shelf) call() {
	s.made++
	s.offer(s.now, new(audit.Policy).Body(nil, &audit.Event{Time: s.now, Op: audit.OpPut,
		Parts: []audit.Part{{Key: fmt.Appendf(nil, "k%d", s.made)}}}, audit.Metadata, audit.Plain), false)
}

func (s *shelf) turn(after time.Duration) {
	s.now = s.now.Add(after)
	s.Turn(s.now)
}

func (s *shelf) verify(t *testing.T, heads ...audit.Head) *audit.Report {
	t.Helper()
	var files []audit.File
	for i, f := range s.file.files {
		files = append(files, audit.File{Name: fmt.Sprint(i), Lines: bytes.NewReader(f)})
	}
	report, err := audit.Verify(files, heads)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (s *shelf) all() string { return string(bytes.Join(s.file.files, nil)) }

var errFull = errors.New("no space left on device")

// Ensure that whatever fails and for however long, records that were taken are in the files once, in order, in a chain that
// verifies, and that those which were not are counted and told.
func TestSink_walk(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newShelf(8<<10, 2<<10)
		var heads []audit.Head
		for range 400 {
			switch rng.IntN(12) {
			case 0:
				s.file.fails, s.file.partial = errFull, rng.IntN(300)
			case 1, 2:
				s.file.fails = nil
			case 3:
				if head, moved, err := s.Head(s.now, uint64(rng.IntN(3))); moved && err == nil {
					heads = append(heads, head)
				}
			case 4, 5, 6:
				s.turn(time.Duration(rng.IntN(2000)) * time.Millisecond)
			default:
				s.call()
			}
			if n := cap(s.waiting) + cap(s.bodies); n > s.most+4<<10 {
				t.Fatalf("seed %d: %d bytes are held", seed, n)
			}
		}
		s.file.fails = nil
		s.turn(time.Second)
		s.turn(time.Second)
		report := s.verify(t, heads...)
		if report.Broken() {
			t.Fatalf("seed %d: %+v", seed, report.Findings)
		}
		found, at := 0, 0
		for i := range s.made {
			if next := strings.Index(s.all()[at:], fmt.Sprintf(`"key":"k%d"`, i+1)); next >= 0 {
				found, at = found+1, at+next
			}
		}
		taken, dropped := int(s.taken.Load()), int(s.dropped.Load())
		if found != taken || taken+dropped != s.made || strings.Count(s.all(), `"key":"k`) != taken {
			t.Fatalf("seed %d: %d made, %d taken, %d found, %d dropped", seed, s.made, taken, found, dropped)
		}
		if told := strings.Contains(s.all(), `"event":"lost"`); told != (dropped > 0) {
			t.Fatalf("seed %d: %d dropped, told: %t", seed, dropped, told)
		}
	}
}

// Ensure that a file which is gone, or another one, is noticed within a second, that a new one is begun, and that it says why
// and goes on in the chain.
func TestSink_Turn_gone(t *testing.T) {
	for _, why := range []string{audit.Deleted, audit.Replaced, audit.Cut} {
		s := newShelf(8<<10, 0)
		s.call()
		s.turn(0)
		s.file.why = why
		s.turn(lookEvery)
		s.call()
		s.turn(0)
		if all := s.all(); strings.Contains(all, `"k1"`) || !strings.Contains(all, `"k2"`) ||
			!strings.Contains(all, `{"seq":3,"member":"1","prev":`) || !strings.Contains(all, `"why":"`+why+`"`) {
			t.Errorf("%s: got %s", why, all)
		}
	}
}

// Ensure that nothing is written to a file of which it is not known whether it still has its name, and that the sink goes on by
// itself once that is known.
func TestSink_Turn_unseen(t *testing.T) {
	s := newShelf(8<<10, 0)
	s.call()
	s.turn(0)
	s.file.unseen = errors.New("not a directory")
	s.turn(lookEvery)
	before := s.all()
	s.call()
	for range 8 {
		s.turn(retryAfter)
	}
	if s.all() != before || s.Trouble() == "" {
		t.Errorf("written: %q; trouble %q", strings.TrimPrefix(s.all(), before), s.Trouble())
	}
	s.file.unseen = nil
	s.turn(lookEvery)
	s.turn(retryAfter)
	if s.all() == before || s.Trouble() != "" {
		t.Errorf("nothing is written again; trouble %q", s.Trouble())
	}
}

// Ensure that a file which is gone while a line was written only in part loses no record of that and later lines: they are in
// the next file, behind the record that says why, in a chain that verifies.
func TestSink_Turn_goneInALine(t *testing.T) {
	for cut := range 900 {
		s := newShelf(8<<10, 0)
		s.turn(0) // the first record of the file
		for range 4 {
			s.call()
		}
		s.file.fails, s.file.partial = errFull, cut
		s.turn(0)
		whole := strings.Count(s.all(), `"key":"k`)
		if !strings.HasSuffix(s.all(), "\n") && strings.Contains(s.all()[strings.LastIndexByte(s.all(), '\n')+1:], `"key":"k`) {
			whole-- // all of the last one but its end
		}
		s.file.fails, s.file.why = nil, audit.Replaced
		s.turn(lookEvery)
		next := fmt.Sprintf(`{"seq":%d,`, 1+whole+1) // it goes on behind the last whole line
		if report := s.verify(t); report.Broken() || int(report.Records) != 1+4-whole || !strings.HasPrefix(s.all(), next) {
			t.Fatalf("cut at %d, behind %d records: %d records, %+v\n%s", cut, whole, report.Records, report.Findings, s.all())
		}
	}
}

// Ensure that a head is of what is on disk, and that there is none while lines wait.
func TestSink_Head(t *testing.T) {
	s := newShelf(8<<10, 0)
	s.call()
	s.turn(0)
	head, moved, err := s.Head(s.now, 0)
	if err != nil || !moved || head.Sequence != 2 || s.file.synced != 1 {
		t.Fatalf("got %+v, %t, %v; %d syncs", head, moved, err, s.file.synced)
	}
	if _, moved, _ := s.Head(s.now, head.Sequence); moved || s.file.synced != 1 {
		t.Error("a head that did not move")
	}
	s.call()
	s.file.fails = errFull
	s.turn(0)
	if _, moved, err := s.Head(s.now, head.Sequence); moved || err != nil {
		t.Errorf("while lines wait: %t, %v", moved, err)
	}
	if s.Trouble() != errFull.Error() {
		t.Errorf("got %q", s.Trouble())
	}
	s.file.fails = nil
	s.turn(retryAfter)
	s.file.fails = errFull
	if _, moved, err := s.Head(s.now, head.Sequence); moved || !errors.Is(err, errFull) {
		t.Errorf("a sync that fails: %t, %v", moved, err)
	}
}
