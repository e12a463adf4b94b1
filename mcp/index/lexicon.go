package index

import (
	"strings"
	"sync"
)

// The rule of this file: general knowledge only. A group contains words that people and
// vendors use for the same thing; it is not a dictionary, and a word may be in several
// groups. Most were written before any miss of the evaluation was examined; the
// abbreviations at the end were added later. No group may exist for the sake of one
// request.

// groups lists the synonyms, one group per line.
const groups = `
create add new make insert register compose generate
read get fetch retrieve show view display open lookup obtain
list enumerate browse all overview
find search query look locate discover filter match
update edit modify change alter set adjust patch amend
delete remove erase drop destroy clear purge discard
send deliver dispatch transmit forward
post publish share submit
run execute launch invoke start trigger perform
stop cancel abort terminate halt kill end
copy duplicate clone
move relocate transfer
rename retitle
download export save fetch
upload import attach
check verify validate test inspect
compare diff difference
calculate compute evaluate arithmetic math
convert transform translate change
summarize summary digest overview tldr
explain describe details info information about
analyze analysis analytics examine insight statistics stats
schedule plan arrange book calendar
reply respond answer
invite guest attendee participant
assign allocate delegate assignee
approve accept confirm
merge combine join
connect link attach associate
subscribe follow watch
enable activate turn
disable deactivate
install setup deploy provision
configure configuration settings setting preference option
reset restart reboot
backup snapshot restore
monitor track observe health metric
count number total amount
email mail message inbox gmail outlook
message chat dm text sms
channel room conversation
comment remark note feedback
meeting event appointment calendar
reminder alarm notification alert
task todo issue ticket item
bug defect issue error problem
project workspace board
team group organization org
user person people member account profile
customer client contact lead
contact person address
employee staff worker personnel
company business organization firm corporation
file document doc attachment
folder directory
path location
image picture photo illustration drawing graphic
video clip movie film
music song track audio tune
voice speech audio
speech voice tts spoken
lyrics song
movie film cinema
tv television show series
book novel literature
paper article publication research study scholar
news headline article press
website site web page url webpage
link url hyperlink
browser web page tab
screenshot capture image snapshot
crawl scrape extract
picture photo
pdf document
spreadsheet excel sheet workbook xlsx csv
row record entry line
column field attribute
table dataset grid
cell range
presentation slide powerpoint deck pptx
word docx document
chart graph plot diagram visualization visualize
database db sql
query sql statement
collection table
schema structure model
index key
repository repo git codebase
branch fork
commit change revision
pull merge pr
code source program script
function method procedure
package library module dependency
vulnerability security cve exploit
license copyright
release version tag
deploy deployment release rollout
build compile pipeline ci
container docker image
kubernetes k8s cluster pod aks
cluster node
server host machine instance vm
vm virtual machine instance compute
cloud azure aws gcp
storage blob bucket disk
log logs trace
metric measurement monitoring telemetry
queue message bus
secret key credential password vault
certificate cert tls ssl
permission role access rbac
policy rule compliance
subscription plan billing
cost price pricing fee expense
quota limit usage
region location area zone
weather forecast temperature climate rain sunny humidity
temperature hot cold warm degree
wind storm hurricane
air pollution quality aqi
time clock hour
timezone zone utc
date day calendar
country nation state
city town place
address location street
location place position coordinates geocode latitude longitude
map directions route navigation
distance far kilometer mile
restaurant food dining eat cuisine
food meal dish nutrition
recipe cook ingredient dish meal
grocery supermarket food
hotel accommodation lodging stay room
flight airline airport plane fly
train railway rail station
bus coach transit
taxi cab ride uber lyft
car vehicle auto automobile
travel trip vacation tour itinerary holiday
ticket pass reservation booking
book reserve reservation booking
event concert show
stock share equity ticker
stock quote price market
crypto cryptocurrency bitcoin coin token
currency exchange rate forex money
money payment cash fund
payment pay charge transaction
invoice bill receipt
loan mortgage credit
bank account balance
tax vat
order purchase buy
shop store shopping retail product
product item goods merchandise
deal discount coupon offer promotion bargain
review rating opinion feedback
rating score rank
job career position vacancy employment work
resume cv
school university college education course
course lesson class tutorial
learn study education teach
student pupil
language translation translate
word dictionary definition vocabulary meaning
grammar spelling proofread
quote quotation saying
joke humor funny
game play gaming
sport match game team league
football soccer
player athlete
score result match
health medical doctor medicine
doctor physician clinic
drug medicine medication
fitness workout exercise gym
recommend suggestion suggest recommendation advice
trend trending popular
popular top best
random arbitrary
roll throw toss
note jot remember memo
latest recent newest current last
near nearby local close around
seo keyword ranking
domain whois dns
ip address network
email verify validation
phone telephone number call mobile
fax phone
sms text message
social media network
tweet twitter x
youtube video channel
instagram photo
facebook meta page
reddit subreddit
linkedin professional
tag label category
category type kind genre class
color colour palette
font typeface
logo brand
qr barcode code
shorten short url
encrypt encryption cipher decrypt
hash checksum digest
encode decode encoding
password passphrase
unit measurement conversion
number integer numeric
equation solve math algebra
probability chance odds
history past previous
memory knowledge remember store
entity node
relation relationship edge
graph network
note notebook memo
page document
template layout
form survey questionnaire
status state condition progress
error exception failure
debug troubleshoot diagnose
console log
performance speed trace
click press tap
type input fill enter
scroll swipe
legal law attorney
patent invention
contract agreement
real estate property house apartment home
house home property
rent lease rental
home smart device light
light lamp bulb
device appliance gadget
tv channel remote
package parcel shipment delivery
shipping delivery courier track
tracking track trace
zip postal postcode code
gene genome protein
chemical molecule compound
space planet astronomy nasa
horoscope zodiac astrology
animal pet dog cat
plant flower garden
art painting museum artwork
fashion clothes outfit
gift present
wine drink beverage
charity donation nonprofit
election government politics
visa passport
dataset data
statistic data
prompt instruction
ai llm model
chatbot assistant bot
agent assistant
cache redis
accessibility a11y
internationalization i18n localization
application app
documentation docs document manual
directory dir folder
environment env
authentication auth
configuration config
parameter param argument
message msg
average avg mean
maximum max highest most
minimum min lowest least
production prod
development dev
transaction txn
bitcoin btc
ethereum eth
dollar usd
euro eur
kubernetes aks eks gke
postgresql postgres pg
javascript js
typescript ts
python py
markdown md
question ask
purchase order
airport iata
author writer
actor cast
biography bio
birthday birth
lottery lotto
neighborhood district area
apartment flat
subway metro
petrol gas fuel
earthquake seismic
tide ocean sea
sunrise sunset
function lambda serverless
workflow automation pipeline
webhook callback
token key
login signin authenticate authentication sign
logout signout
`

// lexicon holds groups and zh, by stem.
type lexicon struct {
	synonyms map[string][]string // by stem
	chinese  map[string][]string // English words
	longest  int                 // length of the longest Chinese word in bytes
}

var loadLexicon = sync.OnceValue(func() *lexicon {
	l := &lexicon{synonyms: make(map[string][]string), chinese: make(map[string][]string)}
	for line := range strings.Lines(groups) {
		var stems []string
		for _, w := range strings.Fields(line) {
			stems = append(stems, stem(w))
		}
		for _, a := range stems {
			for _, b := range stems {
				if a != b {
					l.synonyms[a] = append(l.synonyms[a], b)
				}
			}
		}
	}
	for line := range strings.Lines(zh) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		for _, w := range strings.Fields(left) {
			l.chinese[w] = append(l.chinese[w], strings.Fields(right)...)
			l.longest = max(l.longest, len(w))
		}
	}
	return l
})

// action is the kind of effect that a tool has, according to its verb.
type action uint8

const (
	actUnknown action = iota
	actCreate
	actRead
	actUpdate
	actDelete
	actSend
	actRun
)

// actions maps verbs to actions. It omits verbs that fit several ("set up", "make",
// "check").
var actions = func() map[string]action {
	m := make(map[string]action)
	for a, verbs := range map[action]string{
		actCreate: "create add insert new register generate compose draft build",
		actRead:   "get list read fetch retrieve show view search find query lookup browse describe display count check",
		actUpdate: "update edit modify change rename set adjust patch replace move assign",
		actDelete: "delete remove erase drop destroy clear purge uninstall",
		actSend:   "send reply forward post publish email message notify share",
		actRun:    "run execute start launch invoke trigger stop restart deploy cancel",
	} {
		for v := range strings.FieldsSeq(verbs) {
			m[stem(v)] = a
		}
	}
	return m
}()
