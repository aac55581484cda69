package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// journal is a file of results, a line of JSON each, which outlives a campaign: the next one with the same seed goes on where
// that one ended.
type journal struct {
	file   *os.File
	before map[int]result
}

// openJournal reads what the file has, which must be mutants of this order, and prepares to add to it.
func openJournal(name string, order []mutation) (*journal, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file, before: map[int]result{}}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			err = fmt.Errorf("%s: line %d is no result: %w; delete that line", name, number, err)
			return nil, errors.Join(err, file.Close())
		}
		if i := r.Number - 1; i < 0 || i >= len(order) || !r.sameAs(&order[i]) {
			err := fmt.Errorf("%s: line %d is of another seed, other packages or another tree; name another file",
				name, number)
			return nil, errors.Join(err, file.Close())
		}
		j.before[r.Number] = r
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// tried returns the result of a mutant, if an earlier campaign tried it. A mutant that survived the quick tests alone is tried
// again by a campaign that asks for more.
func (j *journal) tried(number int, quick bool) (result, bool) {
	if j == nil {
		return result{}, false
	}
	r, known := j.before[number]
	if r.Quick && r.Outcome == survived && !quick {
		return result{}, false
	}
	return r, known
}

// keep writes a result.
func (j *journal) keep(r *result) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
