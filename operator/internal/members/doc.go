// Package members asks the members of a cluster: which members there are, what the doctor says, and for jobs. Pods are
// asked at their own addresses, under the host names in their certificates, so that no name has to resolve where the
// operator runs.
//
// Answers of another cluster are none.
package members
