create table shop_order (
  id bigint primary key,
  customer text not null
);
create table shop_item (
  id bigint primary key,
  order_id bigint not null references shop_order,
  name text not null
);
create index on shop_item (order_id);
