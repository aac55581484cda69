// Package stages tests .ci/stages, which runs the stages of CI and says at the end which of them are red and why.
//
// It has no code of its own. The tests replace make by a script, so that no stage is run in earnest.
package stages
