// Package questions declares what the platform's services ask each other over NATS: the name of each question, its
// request, its answer, and the kinds of errors that can come instead. The asking and the answering service both
// import the declaration; neither imports the other.
//
// The JSON form of a question is a stable format: during an upgrade, services of two versions exchange it. A member
// may be added if its absence keeps the old meaning; members are never renamed or removed. testdata has an example of
// each request and answer.
//
// Each declaration says what the asking service does if nobody answers.
package questions
