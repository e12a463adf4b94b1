package index

import (
	"strings"
	"sync"
)

// The rule of this file: general knowledge only, written down before any
// request was looked at. A group holds words that people and vendors use for
// one thing; it is no dictionary, and a word may stand in several groups.

// groups are the synonyms, one group a line.
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

// zh gives the English words for Chinese ones, simplified and traditional, so
// that a Chinese request finds an English tool: "zh zh…=en en…" a line.
const zh = `
天气 天氣=weather
天气预报 天氣預報 预报 預報=weather forecast
气温 氣溫 温度 溫度=temperature weather
下雨 降雨 雨=rain weather
空气质量 空氣質量 空氣品質=air quality
时间 時間=time
现在 現在=current time now
几点 幾點=time current
时区 時區=timezone time
日期=date
日历 日曆 行事曆=calendar
今天=today
明天=tomorrow
会议 會議=meeting event
日程 行程=schedule calendar event
提醒=reminder
闹钟 鬧鐘=alarm
任务 任務=task
待办 待辦=todo task
项目 專案 項目=project
问题 問題=issue problem question
工单 工單=ticket issue
邮件 郵件 电子邮件 電子郵件 邮箱 郵箱=email mail
收件箱 收件匣=inbox email
消息 訊息 信息 讯息=message
短信 簡訊=sms message
频道 頻道=channel
评论 評論 留言=comment
联系人 聯絡人 聯繫人=contact
用户 用戶 使用者=user
成员 成員=member
客户 客戶=customer
团队 團隊=team
公司 企业 企業=company
文件 档案 檔案=file
文件夹 文件夾 资料夹 資料夾 目录 目錄=folder directory
文档 文檔 文件档=document
内容 內容=content
图片 圖片 图像 圖像 照片 相片=image picture photo
视频 視頻 影片=video
音乐 音樂=music
歌曲 歌=song music
歌词 歌詞=lyrics
语音 語音=voice speech
电影 電影=movie film
书 书籍 書 書籍 图书 圖書=book
论文 論文=paper
新闻 新聞=news
文章=article
网页 網頁=web page
网站 網站=website
网址 網址 链接 連結 鏈接=url link
浏览器 瀏覽器=browser
标签页 分頁=tab page
截图 截圖 截屏=screenshot
抓取 爬取=scrape crawl fetch
表格 电子表格 電子表格 试算表 試算表=spreadsheet sheet table
工作表=worksheet sheet
幻灯片 幻燈片 演示文稿 简报 簡報=slide presentation
图表 圖表=chart graph
柱状图 柱狀圖 条形图 長條圖=bar chart
折线图 折線圖=line chart
饼图 圓餅圖=pie chart
数据库 數據庫 資料庫=database
数据 數據 資料=data
集合=collection
表=table
索引=index
记录 記錄 紀錄=record
字段 欄位=field
仓库 倉庫 代码库 程式碼庫=repository
分支=branch
提交=commit submit
拉取请求 合并请求 拉取請求=pull request
合并 合併=merge
代码 代碼 程式碼=code
脚本 腳本=script
版本=version
发布 發布 發佈=publish release
部署=deploy deployment
容器=container
集群 叢集=cluster
服务器 伺服器 服務器=server
虚拟机 虛擬機=virtual machine vm
存储 儲存 存儲=storage
日志 日誌=log
监控 監控=monitor
密钥 密鑰 金鑰=key secret
密码 密碼=password
证书 證書 憑證=certificate
权限 權限=permission role
费用 費用 成本=cost price
价格 價格 价钱 價錢=price
配额 配額=quota
订阅 訂閱=subscription subscribe
创建 創建 新建 建立 新增 添加=create add
生成 產生=generate create
写 寫 写入 寫入=write
读 讀 读取 讀取=read
查看 显示 顯示 看=show get view
获取 獲取 取得=get fetch
列出 列表 清单 清單=list
所有 全部=all
查询 查詢=query search
搜索 搜尋 查找 尋找 寻找 找=search find
更新=update
修改 更改 编辑 編輯=edit update modify
删除 刪除 移除=delete remove
发送 發送 寄=send
发 發=send post
回复 回覆=reply
转发 轉發=forward
运行 運行 执行 執行=run execute
启动 啟動=start
停止=stop
取消=cancel
复制 複製=copy
移动 移動=move
重命名 改名=rename
下载 下載=download
上传 上傳=upload
导出 導出 匯出=export
导入 導入 匯入=import
保存 儲存=save
打开 打開 開啟=open
关闭 關閉=close
检查 檢查=check
验证 驗證=verify validate
比较 比較=compare
计算 計算=calculate compute
转换 轉換 换算 換算=convert conversion
翻译 翻譯=translate translation
总结 總結 摘要=summarize summary
分析=analyze analysis
统计 統計=statistics count
安排=schedule
预订 預訂 预约 預約 订 訂=book reserve booking
购买 購買 买 買=buy purchase
支付 付款=payment pay
发票 發票=invoice
订单 訂單=order
商品 产品 產品=product
商店 店=shop store
优惠 優惠 折扣=discount deal coupon
餐厅 餐廳 饭店 餐館=restaurant
食谱 食譜 菜谱=recipe
菜=dish food
酒店 旅馆 旅館=hotel
航班 机票 機票 飞机 飛機=flight
机场 機場=airport
火车 火車 列车 列車 高铁 高鐵=train
火车票 火車票 车票 車票=train ticket
车站 車站=station
出租车 計程車 打车=taxi ride
汽车 汽車=car vehicle
旅行 旅游 旅遊=travel trip
地图 地圖=map
路线 路線 导航 導航=route directions
距离 距離=distance
位置 地点 地點=location place
附近=nearby
地址=address
城市=city
国家 國家=country
经纬度 經緯度 坐标 座標=coordinates latitude longitude
股票 股价 股價=stock price
汇率 匯率=exchange rate currency
货币 貨幣=currency
美元=usd dollar currency
人民币 人民幣=cny yuan currency
比特币 比特幣=bitcoin crypto
加密货币 加密貨幣=cryptocurrency crypto
基金=fund
银行 銀行=bank
账户 帳戶 账号 帳號=account
余额 餘額=balance
工作 职位 職位=job
简历 簡歷 履歷=resume
学校 學校 大学 大學=school university
课程 課程=course
单词 單詞=word dictionary
词典 字典=dictionary
笑话 笑話=joke
游戏 遊戲=game
足球=football soccer
篮球 籃球=basketball nba
比赛 比賽=match game
球队 球隊=team
医生 醫生=doctor
健康=health
药 藥=medicine drug
推荐 推薦=recommend recommendation
热门 熱門=popular trending
最新=latest
随机 隨機=random
骰子=dice roll
随机数 隨機數=random number
单位 單位=unit
数学 數學=math
方程=equation
数字 數字=number
电话 電話=phone
二维码 二維碼=qr code
域名=domain
网络 網絡 網路=network
颜色 顏色=color
笔记 筆記=note
记忆 記憶=memory
实体 實體=entity
关系 關係=relation
页面 頁面=page
模板 範本=template
表单 表單=form
状态 狀態=status
错误 錯誤=error
测试 測試=test
点击 點擊=click
输入 輸入=input type fill
按钮 按鈕=button
控制台=console
性能 效能=performance
快递 快遞 包裹 物流=package parcel shipment tracking
邮编 郵編 郵遞區號=postal zip code
设备 設備=device
灯 燈=light
历史 歷史=history
标签 標籤=label tag
类型 類型=type
名称 名稱 名字=name
文本 文字=text
字符串 字串=string
哈希=hash
加密=encrypt
编码 編碼=encode
排序=sort
配置 設定 设置=configuration settings
工作流 工作流程=workflow
模型=model
函数 函數=function
队列 佇列=queue
缓存 快取=cache
资源 資源=resource
资源组 資源群組=resource group
订阅者=subscriber
历史记录 歷史記錄=history
`

// lexicon is the two lists above, by stem.
type lexicon struct {
	synonyms map[string][]string // by stem
	chinese  map[string][]string // English words
	longest  int                 // bytes of the longest Chinese word
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

// action is what a tool does to the world, as far as its verb tells.
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

// actions gives the verbs of each action. Verbs that fit several ("set up",
// "make", "check") stand in none.
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
