package ship

// road is what an operation goes by. A place does so many operations at once, and the caller lets none wait that was begun: so
// nothing but these counts decides what waits for what.
type road uint8

const (
	byDisk   road = iota // it is on the member's own disk
	toLog                // segments and notes of gaps, one of which is put each second
	toOthers             // files and manifests of bases, and retention: they may take long, and leave one operation to the log
)

// roads counts what is under way.
type roads struct {
	atOnce int // at the place
	under  [toOthers + 1]int
	pruned bool // the last one to others was retention's
}

// free reports whether an operation may begin.
func (r *roads) free(to road) bool {
	log, others := r.under[toLog], r.under[toOthers]
	return log+others < r.atOnce && (to == toLog || others < r.atOnce-1)
}

func (r *roads) begin(by road, prunes bool) {
	if r.under[by]++; by == toOthers {
		r.pruned = prunes
	}
}

func (r *roads) end(by road) { r.under[by]-- }
