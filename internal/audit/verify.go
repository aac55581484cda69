package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Finding is a sentence about files of records.
type Finding struct {
	// Broken: the files do not hold what was written. The others say what the files cannot prove.
	Broken bool
	Text   string
}

// Report is the outcome of a verification.
type Report struct {
	Records  uint64
	Heads    int // that agree with a record of the files
	Findings []Finding
}

// Broken reports whether a finding is.
func (r *Report) Broken() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Broken })
}

func (r *Report) broken(format string, args ...any) {
	r.Findings = append(r.Findings, Finding{true, fmt.Sprintf(format, args...)})
}

func (r *Report) note(format string, args ...any) {
	r.Findings = append(r.Findings, Finding{false, fmt.Sprintf(format, args...)})
}

// record is what verification reads of a line.
type record struct {
	Seq    uint64    `json:"seq"`
	Prev   string    `json:"prev"`
	Time   time.Time `json:"time"`
	Event  string    `json:"event"`
	Member string    `json:"member"`
	Chain  string    `json:"chain"`
	Why    string    `json:"why"`
	Torn   int       `json:"torn_bytes"`

	sum  Sum
	size int // of its line
}

func (r *record) String() string {
	return fmt.Sprintf("%d (%s)", r.Seq, r.Time.UTC().Format(time.RFC3339))
}

// parseRecord reads a line without its end.
func parseRecord(line []byte) (r record, ok bool) {
	if json.Unmarshal(line, &r) != nil || r.Seq == 0 {
		return record{}, false
	}
	_, ok = ParseSum(r.Prev)
	r.sum, r.size = sumOf(line), len(line)
	return r, ok
}

// Last returns where a chain goes on behind a line, which must be a record's.
func Last(line []byte) (sequence uint64, sum Sum, ok bool) {
	r, ok := parseRecord(line)
	return r.Seq, r.sum, ok
}

// ChainOf returns the member and the chain of a line that is a file's first one.
func ChainOf(line []byte) (member, chain uint64, ok bool) {
	r, ok := parseRecord(line)
	if !ok || r.Event != EventFile {
		return 0, 0, false
	}
	member, known := number64(r.Member)
	chain, named := number64(r.Chain)
	return member, chain, known && named
}

func number64(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 16, 64)
	return n, err == nil
}

func hexadecimal(n uint64) string { return strconv.FormatUint(n, 16) }

// File is one file to verify.
type File struct {
	Name  string
	Lines io.Reader
}

// Verify reads files of records, in any order, and compares them with heads. The error is one of reading. A chain is known by
// its own id: a member that was reset has another one, and goes on in the chain of its file.
func Verify(files []File, heads []Head) (*Report, error) {
	report := new(Report)
	index := map[place][]*Head{}
	for i := range heads {
		at := place{heads[i].Chain, heads[i].Sequence}
		index[at] = append(index[at], &heads[i])
	}
	var read []*reading
	for _, f := range files {
		one := &reading{name: f.Name, report: report, heads: index,
			members: map[uint64]time.Time{}}
		if err := one.read(f.Lines); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		switch {
		case one.count == 0:
			report.broken("%s has no record", f.Name)
		case one.chain == 0:
			report.broken("%s does not begin with the record of a new file: its beginning was cut", f.Name)
		default:
			read = append(read, one)
		}
	}
	slices.SortStableFunc(read, func(a, b *reading) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.first.Seq, b.first.Seq))
	})
	report.absent(read, heads)
	for len(read) > 0 {
		first := read[0]
		n := slices.IndexFunc(read, func(r *reading) bool { return r.chain != first.chain })
		if n < 0 {
			n = len(read)
		}
		report.joints(read[:n])
		report.ends(read[:n], heads)
		read = read[n:]
	}
	return report, nil
}

// place names a record.
type place struct{ chain, sequence uint64 }

// reading is the state of one file that is being read.
type reading struct {
	name   string
	report *Report
	heads  map[place][]*Head

	chain       uint64
	members     map[uint64]time.Time // whose records are here, and since when
	count       int
	first, last record
	before      record // the one before last
	bad         int    // length of a line that is no record, behind last; negative: none
	badLine     int
	cut         bool // the last line has no end
	agreed      *Head
}

// maxLine bounds a line.
const maxLine = maxBody + 256

func (f *reading) read(from io.Reader) error {
	lines := bufio.NewReaderSize(from, maxLine)
	f.bad = -1
	for at := 1; ; at++ {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // longer than any record
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if errors.Is(err, io.EOF) {
			f.end(line)
			return nil
		}
		f.line(at, bytes.TrimSuffix(line, []byte("\n")))
	}
}

// end takes what stands behind the last whole line.
func (f *reading) end(rest []byte) {
	if f.bad >= 0 && f.count > 0 {
		f.report.broken("%s: line %d is no record, behind record %s: it was changed or damaged", f.name, f.badLine, &f.last)
	}
	f.cut = len(rest) > 0
}

// line takes one line.
func (f *reading) line(at int, line []byte) {
	r, ok := parseRecord(line)
	if !ok {
		switch {
		case f.bad >= 0 && f.count == 0:
			f.report.broken("%s: line %d is no record: it was changed or damaged", f.name, f.badLine)
		case f.bad >= 0:
			f.report.broken("%s: line %d is no record, behind record %s: it was changed or damaged",
				f.name, f.badLine, &f.last)
		}
		f.bad, f.badLine = len(line), at
		return
	}
	f.report.Records++
	f.count++
	if f.count == 1 {
		f.first = r
		if f.bad >= 0 {
			f.report.broken("%s: line %d is no record, before record %s: it was changed or damaged", f.name, f.badLine, &r)
		}
		f.bad = -1
	} else {
		f.follow(&r)
	}
	f.before, f.last = f.last, r
	if member, ok := number64(r.Member); ok && f.members[member].IsZero() {
		f.members[member] = r.Time
	}
	if f.chain == 0 && r.Event == EventFile {
		f.chain, _ = number64(r.Chain)
		if f.count > 1 {
			f.report.broken("%s does not begin with the record of a new file but with record %s: its beginning was cut",
				f.name, &f.first)
		}
	}
	f.compare(&r)
}

// follow checks that a record is the one behind the last.
func (f *reading) follow(r *record) {
	last := f.last
	if r.Event == EventFile && r.Torn > 0 {
		switch {
		case f.bad == r.Torn:
			f.bad = -1
		case f.bad < 0 && last.size == r.Torn: // all of it was there, but for its end
			last = f.before
			f.report.Records--
		}
		f.report.note("%s: behind record %s stands a line that a crash left unfinished", f.name, &last)
	}
	if f.bad >= 0 {
		f.report.broken("%s: line %d is no record, between record %s and %s: it was changed or damaged",
			f.name, f.badLine, &last, r)
		missing := r.Seq - last.Seq
		f.bad = -1
		if missing == 2 { // it was the one between them
			return
		}
	}
	switch {
	case r.Seq <= last.Seq:
		f.report.broken("%s: record %s stands behind record %s: they are out of order, or one is there twice", f.name, r, &last)
	case r.Seq > last.Seq+1:
		f.report.broken("%s: %s missing, between record %s and %s", f.name, recordsAre(last.Seq+1, r.Seq-1), &last, r)
	case r.Prev != last.sum.String():
		f.report.broken("%s: record %s, or the beginning of record %s, was changed: the sum does not agree", f.name, &last, r)
	}
	if r.Event == EventFile && r.Why == Resumes && last.Event != EventEnds {
		f.report.note("%s: behind record %s the process ended without its last record, and resumed at %s: records that "+
			"were not on disk may be missing there", f.name, &last, r.Time.UTC().Format(time.RFC3339))
	}
}

// compare compares a record with the heads.
func (f *reading) compare(r *record) {
	if f.chain == 0 {
		return
	}
	heads := f.heads[place{f.chain, r.Seq}]
	if !slices.ContainsFunc(heads, func(h *Head) bool { return h.Sum != r.sum }) {
		f.report.Heads += len(heads)
		if len(heads) > 0 {
			f.agreed = heads[0]
		}
		return
	}
	after := "from the beginning of the file on"
	if f.agreed != nil {
		after = fmt.Sprintf("behind record %d, with which a head agrees", f.agreed.Sequence)
	}
	f.report.broken("%s: record %s is not the one whose head the cluster has: it or one before it was changed, %s",
		f.name, r, after)
}

// recordsAre names records by their numbers, with the verb that follows.
func recordsAre(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("record %d is", from)
	}
	return fmt.Sprintf("records %d to %d are", from, to)
}

// joints checks that the files of one chain follow each other.
func (r *Report) joints(files []*reading) {
	for i := 1; i < len(files); i++ {
		last, next := files[i-1], files[i]
		switch {
		case next.first.Seq > last.last.Seq+1:
			r.broken("%s missing, between %s, which ends with record %s, and %s, which begins with "+
				"record %s: the end of the one was cut, or a file between them is "+
				"missing", recordsAre(last.last.Seq+1, next.first.Seq-1), last.name, &last.last, next.name, &next.first)
		case next.first.Seq <= last.last.Seq:
			r.broken("%s and %s have the same records, from %d on", last.name, next.name, next.first.Seq)
		case next.first.Prev != last.last.sum.String():
			r.broken("%s: the last record, %s, was changed: the sum with which %s begins does not agree",
				last.name, &last.last, next.name)
		}
	}
}

// ends says what the heads tell of the end of a chain, and of its beginning.
func (r *Report) ends(files []*reading, heads []Head) {
	first, last := files[0], files[len(files)-1]
	var newest *Head
	older, total := 0, 0
	for i := range heads {
		h := &heads[i]
		if h.Chain != first.chain {
			continue
		}
		total++
		if newest == nil || h.Sequence > newest.Sequence {
			newest = h
		}
		if h.Sequence < first.first.Seq {
			older++
		}
	}
	switch {
	case total == 0:
		r.note("no head is known of chain %s of member %s: records agree with each other, and with nothing else",
			hexadecimal(first.chain), first.first.Member)
	case newest.Sequence > last.last.Seq:
		r.broken("%s missing behind the end of %s, which is record %s: the cluster has the head of "+
			"record %d, of %s, which was on disk before it was written; the file was cut, or an older copy took its "+
			"place", recordsAre(last.last.Seq+1, newest.Sequence), last.name, &last.last, newest.Sequence,
			newest.At.UTC().Format(time.RFC3339))
	case newest.Sequence < last.last.Seq:
		r.note("%s: %s younger than the last head: no head tells whether they were changed or more were cut off",
			last.name, recordsAre(newest.Sequence+1, last.last.Seq))
	}
	if older > 0 {
		r.note("%d of the heads of chain %s are of records before record %d, with which the files begin",
			older, hexadecimal(first.chain), first.first.Seq)
	}
	if first.first.Seq > 1 && older == 0 {
		r.note("the files of chain %s begin with record %d: those before it are not here",
			hexadecimal(first.chain), first.first.Seq)
	}
	if last.cut {
		r.note("%s ends with an unfinished line: it is being written, or a crash left it", last.name)
	}
}

// absent says of which chains of the members there is no file.
func (r *Report) absent(files []*reading, heads []Head) {
	from, known := map[uint64]time.Time{}, map[uint64]bool{}
	for _, f := range files {
		known[f.chain] = true
		for member, since := range f.members {
			if at, ok := from[member]; !ok || since.Before(at) {
				from[member] = since
			}
		}
	}
	for i := range heads {
		h := &heads[i]
		at, ok := from[h.Member]
		if ok && !known[h.Chain] && !h.At.Before(at) {
			known[h.Chain] = true
			r.broken("no file of chain %s of member %s is here, though the cluster has a head of it of %s, when the files "+
				"begin or later: %s was removed, or not given", hexadecimal(h.Chain), hexadecimal(h.Member),
				h.At.UTC().Format(time.RFC3339), cmp.Or(h.File, "its file"))
		}
	}
}
