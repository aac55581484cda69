package directory

import (
	"errors"
	"os"
)

// Traces says which directories a Put below a directory of the root would make, and returns a function that removes them again
// if they are empty. A process that only tries the place calls it, since directories that it leaves would be its user's, and
// closed to the user of members.
func (s *Store) Traces(below string) (remove func()) {
	var absent []string
	for _, name := range []string{below, tempDir} {
		path := s.fs.PathJoin(s.root, name)
		if _, err := s.fs.Stat(path); errors.Is(err, os.ErrNotExist) {
			absent = append(absent, path)
		}
	}
	return func() {
		for _, path := range absent {
			_ = s.fs.Remove(path) // another process may use it meanwhile: then it is not empty, and stays
		}
		s.forget()
	}
}
