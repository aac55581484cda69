package etcdbackup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of a bbolt file. Numbers are little-endian; package bbolt itself has those of the machine.
//
//	page        id (8) flags (2) count (2) overflow (4), then its elements; it takes 1+overflow pages
//	meta        magic (4) version (4) page size (4) flags (4) root page (8) sequence (8) freelist page (8)
//	            end of the pages in use (8) transaction (8) FNV-1a of the above (8); the first two pages are metas
//	branch      elements: position (4) key size (4) page (8); positions count from the element
//	leaf        elements: flags (4) position (4) key size (4) value size (4); flag 1: the value is a bucket
//	bucket      root page (8) sequence (8); root 0: its only page follows
const (
	pageHeaderBytes = 16
	elementBytes    = 16
	bucketBytes     = 16
	metaBytes       = 64

	branchFlag = 1
	leafFlag   = 2
	metaFlag   = 4
	bucketFlag = 1

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	minPageSize = 512
	maxPageSize = 64 << 10
	// maxPageBytes bounds a page with its overflow, which is read at once: far beyond what etcd takes as one request.
	maxPageBytes = 256 << 20
	// maxDepth bounds the height of a tree: 50 levels of two children each are more pages than a disk has.
	maxDepth = 50
)

// pages reads the trees of a bbolt file. Unlike package bbolt, which maps the file and trusts it, it checks every number
// before it uses it, and visits no page twice, so that a damaged or hostile file is an error, not a crash or a loop.
type pages struct {
	file     io.ReaderAt
	size     int64 // of the file, without the checksum at its end
	pageSize int64
	root     uint64
	end      uint64 // of the pages in use
	visited  []uint64
}

func damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// openPages finds the newest valid meta page.
func openPages(file io.ReaderAt, size int64) (*pages, error) {
	var best *pages
	var newest uint64
	take := func(at int64) {
		if p, transaction := readMeta(file, at); p != nil && (best == nil || transaction > newest) {
			best, newest = p, transaction
		}
	}
	take(0)
	if best != nil {
		take(best.pageSize)
	} else {
		for at := int64(minPageSize); at <= maxPageSize; at *= 2 {
			take(at)
		}
	}
	switch {
	case best == nil:
		return nil, ErrNoDatabase
	case best.end < 3 || best.end > uint64(size/best.pageSize):
		return nil, damagedf("it should have %d pages of %d bytes and has %d: it was cut", best.end, best.pageSize,
			size/best.pageSize)
	}
	best.file, best.size = file, size
	best.visited = make([]uint64, best.end/64+1)
	return best, nil
}

func readMeta(file io.ReaderAt, at int64) (p *pages, transaction uint64) {
	var page [pageHeaderBytes + metaBytes]byte
	if _, err := file.ReadAt(page[:], at); err != nil {
		return nil, 0
	}
	meta := page[pageHeaderBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaBytes-8])
	size := int64(binary.LittleEndian.Uint32(meta[8:]))
	switch {
	case binary.LittleEndian.Uint32(meta) != metaMagic, binary.LittleEndian.Uint32(meta[4:]) != metaVersion,
		binary.LittleEndian.Uint64(meta[56:]) != sum.Sum64(), size < minPageSize, size > maxPageSize, size&(size-1) != 0:
		return nil, 0
	}
	return &pages{
		pageSize: size, root: binary.LittleEndian.Uint64(meta[16:]), end: binary.LittleEndian.Uint64(meta[40:]),
	}, binary.LittleEndian.Uint64(meta[48:])
}

// bytesInUse is what bbolt calls the size of the database.
func (p *pages) bytesInUse() int64 { return int64(p.end) * p.pageSize }

// page is one page with its overflow, in memory.
type page struct {
	data  []byte
	leaf  bool
	count int
}

// read reads a page, each only once.
func (p *pages) read(id uint64) (page, error) {
	if id < 2 || id >= p.end {
		return page{}, damagedf("a page refers to page %d, of %d", id, p.end)
	}
	var header [pageHeaderBytes]byte
	if _, err := p.file.ReadAt(header[:], int64(id)*p.pageSize); err != nil {
		return page{}, fmt.Errorf("read page %d: %w", id, err)
	}
	overflow := uint64(binary.LittleEndian.Uint32(header[12:]))
	switch {
	case binary.LittleEndian.Uint64(header[:]) != id:
		return page{}, damagedf("page %d says that it is page %d", id, binary.LittleEndian.Uint64(header[:]))
	case overflow >= p.end-id:
		return page{}, damagedf("page %d reaches beyond the file", id)
	case int64(overflow+1)*p.pageSize > maxPageBytes:
		return page{}, damagedf("page %d has %d bytes", id, int64(overflow+1)*p.pageSize)
	}
	for i := id; i <= id+overflow; i++ {
		if p.visited[i/64]&(1<<(i%64)) != 0 {
			return page{}, damagedf("page %d has two places in the file", i)
		}
		p.visited[i/64] |= 1 << (i % 64)
	}
	data := make([]byte, int64(overflow+1)*p.pageSize)
	if _, err := p.file.ReadAt(data, int64(id)*p.pageSize); err != nil {
		return page{}, fmt.Errorf("read page %d: %w", id, err)
	}
	return parsePage(data, id)
}

func parsePage(data []byte, id uint64) (page, error) {
	if len(data) < pageHeaderBytes {
		return page{}, damagedf("page %d is cut", id)
	}
	flags := binary.LittleEndian.Uint16(data[8:])
	pg := page{data: data, leaf: flags == leafFlag, count: int(binary.LittleEndian.Uint16(data[10:]))}
	if flags != leafFlag && flags != branchFlag {
		return page{}, damagedf("page %d is of kind %d", id, flags)
	}
	if pageHeaderBytes+pg.count*elementBytes > len(data) {
		return page{}, damagedf("page %d has %d elements", id, pg.count)
	}
	return pg, nil
}

// slice returns a part of an element's content.
func (g *page) slice(from, length uint64) ([]byte, error) {
	if from > uint64(len(g.data)) || length > uint64(len(g.data))-from {
		return nil, damagedf("an element reaches beyond its page")
	}
	return g.data[from : from+length : from+length], nil
}

// branch returns the first key and the page of an element.
func (g *page) branch(i int) (key []byte, child uint64, err error) {
	at := uint64(pageHeaderBytes + i*elementBytes)
	e := g.data[at:]
	key, err = g.slice(at+uint64(binary.LittleEndian.Uint32(e)), uint64(binary.LittleEndian.Uint32(e[4:])))
	return key, binary.LittleEndian.Uint64(e[8:]), err
}

// leafRow returns the key and the value of an element, and whether the value is a bucket.
func (g *page) leafRow(i int) (key, value []byte, bucket bool, err error) {
	at := uint64(pageHeaderBytes + i*elementBytes)
	e := g.data[at:]
	from, size := at+uint64(binary.LittleEndian.Uint32(e[4:])), uint64(binary.LittleEndian.Uint32(e[8:]))
	if key, err = g.slice(from, size); err != nil {
		return nil, nil, false, err
	}
	value, err = g.slice(from+size, uint64(binary.LittleEndian.Uint32(e[12:])))
	return key, value, binary.LittleEndian.Uint32(e)&bucketFlag != 0, err
}

// row is what walk visits.
type row struct {
	key, value []byte
	bucket     bool
}

// walker goes through one tree in the order of keys, and checks that order.
type walker struct {
	pages *pages
	last  []byte
	any   bool
	visit func(row) error
}

func (w *walker) tree(id uint64, depth int) error {
	if depth > maxDepth {
		return damagedf("a tree is higher than %d pages", maxDepth)
	}
	pg, err := w.pages.read(id)
	if err != nil {
		return err
	}
	return w.page(&pg, depth)
}

func (w *walker) page(pg *page, depth int) error {
	if pg.leaf {
		return w.leaf(pg)
	}
	if pg.count == 0 {
		return damagedf("a page of branches is empty")
	}
	for i := range pg.count {
		_, child, err := pg.branch(i)
		if err != nil {
			return err
		}
		if err := w.tree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaf(pg *page) error {
	for i := range pg.count {
		key, value, bucket, err := pg.leafRow(i)
		if err != nil {
			return err
		}
		if w.any && bytes.Compare(key, w.last) <= 0 {
			return damagedf("rows are out of order")
		}
		w.any, w.last = true, append(w.last[:0], key...)
		if err := w.visit(row{key, value, bucket}); err != nil {
			return err
		}
	}
	return nil
}

// buckets visits the buckets of the file. Each may be walked once.
func (p *pages) buckets(visit func(name, bucket []byte) error) error {
	clear(p.visited)
	w := walker{pages: p, visit: func(r row) error {
		if !r.bucket {
			return damagedf("row %q is outside of all buckets", r.key)
		}
		return visit(bytes.Clone(r.key), bytes.Clone(r.value))
	}}
	return w.tree(p.root, 0)
}

// rows visits the rows of a bucket. The slices are valid during the call.
func (p *pages) rows(bucket []byte, visit func(key, value []byte) error) error {
	if len(bucket) < bucketBytes {
		return damagedf("a bucket of %d bytes", len(bucket))
	}
	w := walker{pages: p, visit: func(r row) error {
		if r.bucket {
			return damagedf("a bucket lies in another one")
		}
		return visit(r.key, r.value)
	}}
	if root := binary.LittleEndian.Uint64(bucket); root != 0 {
		return w.tree(root, 0)
	}
	pg, err := parsePage(bucket[bucketBytes:], 0)
	if err != nil {
		return err
	}
	if !pg.leaf {
		return damagedf("a small bucket has branches")
	}
	return w.page(&pg, 0)
}
