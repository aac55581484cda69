package audit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/audit"
)

// written is a file of records as a member writes it, with the heads that it published.
type written struct {
	chain audit.Chain
	files [][]byte
	heads []audit.Head
	at    time.Time
}

func newWritten(member, id uint64) *written {
	w := &written{chain: audit.Chain{Member: member, ID: id}, at: time.Unix(1_800_000_000, 0)}
	w.file(audit.Begins, 0)
	return w
}

func (w *written) append(body []byte) {
	last := len(w.files) - 1
	w.files[last] = w.chain.Append(w.files[last], body)
	w.at = w.at.Add(time.Second)
}

func (w *written) file(why string, torn int) {
	if why != audit.Resumes {
		w.files = append(w.files, nil)
	}
	w.append(w.chain.FileBody(nil, w.at, why, torn))
}

func (w *written) calls(n int) {
	policy := new(audit.Policy)
	for range n {
		w.append(policy.Body(nil, &audit.Event{Time: w.at, Op: audit.OpPut, User: "alice",
			Parts: []audit.Part{{Key: fmt.Appendf(nil, "k%d", w.chain.Sequence)}}}, audit.Metadata, audit.Plain))
	}
}

func (w *written) head() {
	w.heads = append(w.heads, audit.Head{Member: w.chain.Member, Chain: w.chain.ID, Sequence: w.chain.Sequence, At: w.at, Sum: w.chain.Sum,
		File: "audit.log"})
}

// sample has two files of 10 records each, heads after records 5, 11 and 18, and two records after these.
func sample() *written {
	w := newWritten(1, 7)
	w.calls(4)
	w.head()
	w.calls(5)
	w.file(audit.Rotated, 0)
	w.head()
	w.calls(7)
	w.head()
	w.calls(2)
	return w
}

func verify(t *testing.T, files [][]byte, heads []audit.Head) *audit.Report {
	t.Helper()
	var open []audit.File
	for i, f := range files {
		open = append(open, audit.File{Name: fmt.Sprintf("f%d", i), Lines: bytes.NewReader(f)})
	}
	report, err := audit.Verify(open, heads)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func texts(r *audit.Report) string { return fmt.Sprintf("%+v", r.Findings) }

// lines changes the lines of a file.
func lines(file []byte, change func(lines [][]byte) [][]byte) []byte {
	split := bytes.SplitAfter(bytes.Clone(file), []byte("\n"))
	return bytes.Join(change(split[:len(split)-1]), nil)
}

// Ensure that what was written verifies, in any order of the files, and that the report says what no head covers.
func TestVerify(t *testing.T) {
	w := sample()
	for _, files := range [][][]byte{w.files, {w.files[1], w.files[0]}} {
		r := verify(t, files, w.heads)
		if r.Broken() || r.Records != 20 || r.Heads != 3 || !strings.Contains(texts(r), ": records 19 to 20 are younger than the last head") {
			t.Errorf("got %+v", r)
		}
	}
	if r := verify(t, w.files, nil); r.Broken() || !strings.Contains(texts(r), "no head is known") {
		t.Errorf("without heads: %+v", r)
	}
	if r := verify(t, w.files[1:], w.heads); r.Broken() || !strings.Contains(texts(r), "1 of the heads") {
		t.Errorf("without the first file: %+v", r)
	}
}

// Ensure that the heads of a member that was reset are found, though it has another id than the one that began the file, and that
// no head of its chain is missed if its former ones are all that the cluster has.
func TestVerify_reset(t *testing.T) {
	w := newWritten(1, 7)
	w.calls(4)
	w.chain.Member = 2
	w.file(audit.Resumes, 0)
	w.calls(4)
	w.head()
	if r := verify(t, w.files, w.heads); r.Broken() || r.Heads != 1 || strings.Contains(texts(r), "no head is known") {
		t.Errorf("got %+v", r)
	}
	cut := lines(w.files[0], func(l [][]byte) [][]byte { return l[:len(l)-2] })
	if r := verify(t, [][]byte{cut}, w.heads); !r.Broken() || !strings.Contains(texts(r), "records 9 to 10 are missing behind the end") {
		t.Errorf("cut: %+v", r)
	}
	w.file(audit.Rotated, 0)
	w.calls(2)
	if r := verify(t, w.files, w.heads); r.Broken() {
		t.Errorf("with a second file: %+v", r)
	}
	w.heads = append(w.heads, audit.Head{Member: 2, Chain: 8, Sequence: 3, At: w.at, File: "other.log"})
	if r := verify(t, w.files, w.heads); !r.Broken() || !strings.Contains(texts(r), "no file of chain 8 of member 2") {
		t.Errorf("without a file of its other chain: %+v", r)
	}
}

// Ensure that each way of changing files is found, and its place named.
func TestVerify_changed(t *testing.T) {
	edit := func(file []byte, at int, from, to string) []byte {
		return lines(file, func(l [][]byte) [][]byte {
			l[at] = bytes.Replace(l[at], []byte(from), []byte(to), 1)
			return l
		})
	}
	forged := newWritten(1, 7) // whoever writes the file can make a chain of his own from some record on
	forged.calls(6)
	forged.chain.Sum[0]++
	forged.calls(3)
	again := newWritten(1, 8)
	again.at = again.at.Add(time.Hour)
	again.calls(3)
	for name, row := range map[string]struct {
		change func(w *written)
		want   string
	}{
		"a record is edited": {func(w *written) { w.files[0] = edit(w.files[0], 3, "alice", "malory") }, "record 4 (2027-01-15T08:00:03Z), or the beginning of record 5"},
		"the last of a file": {func(w *written) { w.files[0] = edit(w.files[0], 9, "alice", "malory") }, "f0: the last record, 10"},
		"a line is no record": {func(w *written) { w.files[0] = edit(w.files[0], 3, `"seq"`, `"sex"`) },
			"f0: line 4 is no record, between record 3 (2027-01-15T08:00:02Z) and 5"},
		"a record is missing": {func(w *written) {
			w.files[0] = lines(w.files[0], func(l [][]byte) [][]byte { return slices.Delete(l, 3, 5) })
		}, "records 4 to 5 are missing, between record 3 (2027-01-15T08:00:02Z) and 6"},
		"two change places": {func(w *written) {
			w.files[0] = lines(w.files[0], func(l [][]byte) [][]byte { l[3], l[4] = l[4], l[3]; return l })
		}, "out of order"},
		"one is there twice": {func(w *written) {
			w.files[0] = lines(w.files[0], func(l [][]byte) [][]byte { return slices.Insert(l, 4, l[3]) })
		}, "there twice"},
		"the beginning is cut": {func(w *written) {
			w.files[0] = lines(w.files[0], func(l [][]byte) [][]byte { return l[2:] })
		}, "does not begin with the record of a new file"},
		"the end of the first file is cut": {func(w *written) {
			w.files[0] = lines(w.files[0], func(l [][]byte) [][]byte { return l[:8] })
		}, "records 9 to 10 are missing, between f0"},
		"the end is cut": {func(w *written) {
			w.files[1] = lines(w.files[1], func(l [][]byte) [][]byte { return l[:6] })
		}, "records 17 to 18 are missing behind the end of f1"},
		"a file is missing": {func(w *written) {
			w.file(audit.Rotated, 0)
			w.calls(3)
			w.files = append(w.files[:1], w.files[2])
		}, "records 11 to 20 are missing, between f0"},
		"a file is there twice": {func(w *written) { w.files = append(w.files, w.files[1]) }, "have the same records"},
		"a chain of one's own":  {func(w *written) { w.files = forged.files }, "record 8"},
		"sums are made anew": {func(w *written) {
			own := newWritten(1, 7)
			own.calls(3)
			own.at = own.at.Add(time.Minute) // another time than what was recorded
			own.calls(16)
			w.files = own.files
		}, "is not the one whose head the cluster has"},
		"the file was removed, and the process started anew": {func(w *written) { w.files, w.heads[2].At = again.files, again.at },
			"no file of chain 7 of member 1 is here"},
		"an empty file": {func(w *written) { w.files = append(w.files, nil) }, "f2 has no record"},
	} {
		w := sample()
		row.change(w)
		if r := verify(t, w.files, w.heads); !r.Broken() || !strings.Contains(texts(r), row.want) {
			t.Errorf("%s: got %+v, want %q", name, r.Findings, row.want)
		}
	}
}

// Ensure that what a crash leaves is told from a change: an unfinished line, a whole line without its end, and the loss of
// records that no head covers.
func TestVerify_crash(t *testing.T) {
	for name, torn := range map[string]func(file []byte) (rest []byte, torn int){
		"half a line": func(file []byte) ([]byte, int) {
			torn := len(lastLine(file)) - 20 + 1
			return append(file[:len(file)-20], '\n'), torn
		},
		"all but its end": func(file []byte) ([]byte, int) { return file, len(lastLine(file)) },
	} {
		w := newWritten(1, 7)
		w.calls(3)
		w.head()
		before := w.chain
		w.calls(1)
		left, n := torn(w.files[0])
		w.chain, w.files[0] = before, left // the process resumes behind the last whole line
		w.file(audit.Resumes, n)
		w.calls(2)
		r := verify(t, w.files, w.heads)
		if r.Broken() || !strings.Contains(texts(r), "that a crash left unfinished") ||
			!strings.Contains(texts(r), "behind record 4 (2027-01-15T08:00:03Z) the process ended without its last record") {
			t.Errorf("%s: got %s", name, texts(r))
		}
	}
	w := newWritten(1, 7)
	w.calls(2)
	w.append(audit.EventBody(nil, w.at, audit.EventEnds, 0, ""))
	w.file(audit.Resumes, 0)
	if r := verify(t, w.files, nil); r.Broken() || strings.Contains(texts(r), "without its last record") {
		t.Errorf("an end in good order: %s", texts(r))
	}
	w.files[0] = append(w.files[0], `{"seq":6,`...)
	if r := verify(t, w.files, nil); r.Broken() || !strings.Contains(texts(r), "ends with an unfinished line") {
		t.Errorf("a line that is being written: %s", texts(r))
	}
}

func lastLine(file []byte) []byte {
	cut := bytes.TrimSuffix(file, []byte("\n"))
	return cut[bytes.LastIndexByte(cut, '\n')+1:]
}

// Ensure that no change of one byte, and no cut, of what heads cover passes: whatever is changed, broken or told as a crash
// after the last head.
func TestVerify_anyByte(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	w := sample()
	covered := len(w.files[1]) - len(lastLine(w.files[1])) - 1
	covered -= len(lastLine(w.files[1][:covered])) + 1
	for range 3000 {
		files := [][]byte{bytes.Clone(w.files[0]), bytes.Clone(w.files[1])}
		f := rng.IntN(2)
		most := [2]int{len(files[0]), covered}[f]
		at := rng.IntN(most)
		if rng.IntN(3) == 0 {
			files[f] = files[f][:at]
		} else {
			files[f][at] ^= byte(1 + rng.IntN(255))
		}
		if r := verify(t, files, w.heads); !r.Broken() {
			t.Fatalf("file %d, byte %d of %d: %s", f, at, most, texts(r))
		}
	}
}

// Ensure that heads survive their file, and that something else is refused.
func TestReadHeads(t *testing.T) {
	want := sample().heads
	var file bytes.Buffer
	if err := audit.WriteHeads(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := audit.ReadHeads(&file)
	if err != nil || len(got) != len(want) || !slices.EqualFunc(got, want, func(a, b audit.Head) bool {
		return a.Sum == b.Sum && a.Sequence == b.Sequence && a.At.Equal(b.At) && a.Member == b.Member && a.File == b.File
	}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"x", `{"seq": 1}`, `{"member":"1","chain":"z","seq":1,"sum":"` + want[0].Sum.String() + `"}`} {
		if _, err := audit.ReadHeads(strings.NewReader(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
