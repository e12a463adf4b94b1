package index

import "strings"

// places contains well-known cities and countries. In a request they are values, and like
// numbers they say nothing about whether a tool fits: it has no word for each of them.
var places = func() map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(`
london paris berlin madrid rome milan naples vienna zurich geneva bern basel munich hamburg frankfurt cologne amsterdam rotterdam brussels antwerp
luxembourg dublin edinburgh glasgow manchester liverpool lisbon porto barcelona seville valencia lyon marseille nice athens istanbul ankara prague
warsaw krakow budapest bucharest sofia belgrade zagreb ljubljana oslo bergen stockholm gothenburg copenhagen helsinki reykjavik tallinn riga vilnius
kyiv kiev moscow minsk tbilisi baku yerevan cairo alexandria casablanca rabat tunis algiers lagos abuja accra dakar nairobi kampala addis kigali
johannesburg pretoria durban dubai doha riyadh jeddah kuwait muscat manama baghdad tehran jerusalem beirut amman damascus kabul karachi lahore
islamabad delhi mumbai bangalore bengaluru chennai kolkata hyderabad pune dhaka colombo kathmandu bangkok hanoi saigon singapore jakarta manila
kuala lumpur beijing shanghai shenzhen guangzhou taipei seoul busan tokyo osaka kyoto sapporo sydney melbourne brisbane perth adelaide canberra
auckland wellington christchurch honolulu anchorage seattle portland oakland sacramento phoenix denver dallas houston chicago detroit boston york
philadelphia washington atlanta miami orlando toronto montreal vancouver calgary ottawa winnipeg havana bogota medellin quito lima santiago
valparaiso caracas montevideo asuncion angeles francisco diego vegas orleans antonio austin janeiro paulo brasilia buenos aires
usa america canada mexico brazil argentina chile peru colombia cuba uk britain england scotland wales ireland france germany spain portugal italy
switzerland austria netherlands belgium denmark norway sweden finland iceland poland hungary romania bulgaria greece turkey ukraine russia egypt
morocco tunisia algeria nigeria ghana kenya uganda ethiopia tanzania zambia zimbabwe israel iran iraq syria lebanon jordan qatar oman pakistan
india bangladesh nepal thailand vietnam malaysia indonesia philippines china taiwan korea japan australia zealand
europe asia africa
`) {
		m[w] = struct{}{}
	}
	return m
}()
